"""What a reader does on the page, for the steps of browser.py."""

import json
import os
import urllib.request

ANSWER = '.message.assistant:last-of-type'


class Page:
    def __init__(self, browser, url, mock, shots):
        self.browser, self.url, self.mock, self.shots = browser, url, mock, shots
        self.checks = 0
        self.run, self.wait, self.press, self.click, self.hover, self.type = (
            browser.run,
            browser.wait,
            browser.press,
            browser.click,
            browser.hover,
            browser.type,
        )

    def check(self, what, truth, seen=None):
        self.checks += 1
        assert truth, f'{what}{"" if seen is None else f"; seen: {seen!r}"}'

    def complaints(self):
        """What the browser complained of, but for answers with an error status, which are part of some steps."""
        return [text for text in self.browser.complaints if 'the server responded with a status of' not in text]

    def foreign(self):
        return [url for url in self.browser.requested if not url.startswith((self.url, 'data:', 'blob:', 'about:'))]

    def shot(self, name):
        if self.shots:
            self.run('new Promise((done) => setTimeout(done, 250))')
            self.browser.shot(os.path.join(self.shots, f'{name}.png'))

    # ---- the mock ----
    def asked(self):
        with urllib.request.urlopen(self.url + 'mock') as reply:
            return json.load(reply)

    def set_mock(self, **what):
        urllib.request.urlopen(urllib.request.Request(self.url + 'mock', json.dumps(what).encode())).read()

    def set_key(self, key):
        self.set_mock(key=key)

    # ---- the page ----
    def open(self, path=''):
        self.browser.open(self.url + path)

    def fresh(self, most_tokens=64):
        """The page as someone sees it who was never here. A model's answers are kept short; the mock's are."""
        self.browser.network()
        self.browser.size(1280, 860)
        self.browser.scheme('light')
        self.open()
        self.run('localStorage.clear(); sessionStorage.clear()')
        if not self.mock:
            self.run(
                f"localStorage.setItem('tessera/defaults', JSON.stringify({{sampling: {{max_tokens: {most_tokens}}}}}))"
            )
        self.open()
        self.wait('document.querySelector("#model").textContent', 30)

    def reload(self):
        self.browser.call('Page.reload')
        self.wait('document.readyState === "complete" && document.querySelector("#model")?.textContent', 30)

    def text(self, selector):
        return self.run(f'document.querySelector({json.dumps(selector)})?.textContent ?? null')

    def texts(self, selector):
        return self.run(f'[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)')

    def count(self, selector):
        return self.run(f'document.querySelectorAll({json.dumps(selector)}).length')

    def seen(self, selector, timeout=10):
        self.wait(f'document.querySelector({json.dumps(selector)})?.checkVisibility()', timeout)

    def focus(self, selector):
        self.run(f'document.querySelector({json.dumps(selector)}).focus()')

    def focused(self, selector):
        return self.run(f'document.activeElement.matches({json.dumps(selector)})')

    def fill(self, selector, text):
        """Types into a box in the place of what is there."""
        self.focus(selector)
        self.run('document.activeElement.select()')
        self.type(text) if text else self.run('document.execCommand("delete")')

    def begin(self, text):
        """Sends a message; its answer is awaited by ended()."""
        self.run(
            'window.endings = 0; window.counting ??= new MutationObserver(() => ++window.endings); '
            'window.counting.observe(document.querySelector("#spoken"), {childList: true})'
        )
        self.fill('#box', text)
        self.press('Enter')

    def slow(self):
        """From here on a model writes slowly, however fast it is: its answers come through a thin line. The mock is asked to."""
        if not self.mock:
            self.browser.network(bytes_a_second=8000)

    def ended(self, timeout=60):
        self.wait('window.endings > 0 && document.querySelector("#composer .send").dataset.label === "Send"', timeout)
        self.check('nothing is waited for any more', self.count('.waiting, .writing, [aria-busy=true]') == 0)

    def say(self, text):
        self.begin(text)
        self.ended()
        return self.answer()

    def answer(self):
        return self.text(f'{ANSWER} .body')

    def new(self):
        self.click('#new')
        self.wait('document.querySelector("#title").textContent === "New conversation"')

    def act(self, action, message=ANSWER):
        self.click(f'{message} [data-do={action}]')

    def version(self, message=ANSWER):
        return self.text(f'{message} .version')

    def stored(self):
        """All conversations as the browser keeps them, by id."""
        return self.run('''Object.fromEntries(Object.keys(localStorage).filter((k) => k.startsWith('tessera/conversation/'))
          .map((k) => [k.slice(21), JSON.parse(localStorage.getItem(k))]))''')
