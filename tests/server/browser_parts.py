"""Steps of browser.py: the context meter, answers that are gone on with, attached files, tokens' probabilities, models."""

import json
import os

from browser_look import inspect
from page_driver import ANSWER

FILE_BOX = 'document.querySelector("#attach-file")'


def numbers(text):
    """(taken, context) of a meter's text."""
    taken, of, context = text.split(' tokens')[0].partition(' of ')
    return int(taken.replace(',', '')), int(context.replace(',', '')) if of else None


def meter(page):
    return numbers(page.text('.meter'))


def usage(page):
    """Tokens of the last answer's request, as the browser keeps what the server said."""
    (conversation,) = page.stored().values()
    nodes = [n for n in conversation['nodes'].values() if n.get('usage')]
    last = max(nodes, key=lambda n: n['created'])
    return last['usage']['prompt_tokens'], last['usage']['completion_tokens']


def measures(page):
    """the context meter shows the server's own numbers, while an answer streams, at rest, and for what is typed"""
    page.fresh(2000)
    page.check('an empty conversation takes nothing', meter(page)[0] == 0, page.text('.meter'))
    page.slow()
    page.run('''window.taken = new Set(); new MutationObserver(() => taken.add(document.querySelector(".meter").textContent))
      .observe(document.querySelector(".meter"), {childList: true, subtree: true, characterData: true})''')
    page.begin('Write a very long, slow text about rivers, mountains and the sea.')
    page.wait('document.querySelector(".message.assistant .prose")?.textContent.length > 60')
    page.check('it says that the answer goes on', 'so far' in page.run('document.querySelector(".meter").title'))
    page.press('Escape')
    page.ended()
    page.check('it moved while the answer was written', page.run('taken.size') > 4, page.run('taken.size'))
    page.check('a stopped answer: what the server said last', meter(page)[0] == sum(usage(page)), (meter(page), usage(page)))
    page.browser.network()
    page.say('One short word, please, and be brief.') if page.mock else None
    taken = meter(page)[0]
    page.check('at rest it is prompt and answer', taken == sum(usage(page)), (taken, usage(page)))
    page.fill('#box', 'some more words that are typed now')
    page.wait('document.querySelector(".meter").title.includes("next prompt")')
    typed = meter(page)[0]
    page.check('what is typed counts', typed > usage(page)[0], (typed, usage(page)))
    page.fill('#box', 'some more words that are typed now, and a good deal more of them: one two three four five six')
    page.wait(f'!document.querySelector(".meter").textContent.startsWith("{typed:,} ")')
    page.check('more of it takes more', meter(page)[0] > typed)
    page.fill('#box', '')
    page.wait(f'document.querySelector(".meter").textContent.startsWith("{taken:,} ")')
    page.press('s', alt=True)
    page.fill('#system', 'Answer as a sailor who has seen all of the seven seas.')
    page.press('s', alt=True)
    page.wait('document.querySelector(".meter").title.includes("next prompt")')
    page.check(
        'a screen reader is told all of it',
        'of the model’s context' in page.run('document.querySelector(".meter").getAttribute("aria-valuetext")'),
    )
    page.fill('#box', 'word ' * 9000)
    page.wait('document.querySelector(".meter").classList.contains("over")')
    page.check('a prompt that does not fit is told before it is sent', 'full' in page.text('.meter'), page.text('.meter'))
    page.shot('meter-full')
    page.fill('#box', '')


def goes_on(page):
    """an answer that was cut by its length, or stopped, is gone on with, without a seam"""
    page.fresh()
    question = 'Name the months of the year and say a sentence of each. Be brief.'
    if not page.mock:
        page.press('s', alt=True)
        page.fill('#set-temperature', '0')
        page.fill('#set-max_tokens', '48')
        page.press('s', alt=True)
        page.say(question)
        (whole,) = [n['content'] for c in page.stored().values() for n in c['nodes'].values() if n['role'] == 'assistant']
        page.press('s', alt=True)
        page.fill('#set-max_tokens', '7')
        page.press('s', alt=True)
        page.run('window.endings = 0')
        page.act('again')
        page.ended()
    else:
        page.say(question)
    content = lambda: [
        n['content'] for c in page.stored().values() for n in c['nodes'].values() if n['role'] == 'assistant'
    ][-1]
    first = content()
    page.check('it says why it ends', 'token limit' in page.text(f'{ANSWER} .ending'), page.text(f'{ANSWER} .ending'))
    page.shot('go-on')
    page.run('window.endings = 0')
    page.act('go-on')
    page.ended()
    page.check('the answer is longer, and begins as it began', content().startswith(first) and len(content()) > len(first))
    page.check('it is the same message', page.count('.message') == 2)
    if page.mock:
        body = page.asked()['last']
        page.check(
            'the model gets the answer as the beginning of its own',
            body['continue_final_message'] is True and body['messages'][-1] == {'role': 'assistant', 'content': first},
            body,
        )
        page.check('joined without a seam', content() == first + ' and so on.' or content().endswith(f'. You said: {question}'), content())
        page.check('it has ended', page.count(f'{ANSWER} [data-do=go-on]') == 0 and page.count(f'{ANSWER} .ending') == 0)
    else:
        for _ in range(5):
            if not page.count(f'{ANSWER} [data-do=go-on]'):
                break  # the model came to its end
            page.run('window.endings = 0')
            page.press('g', alt=True)
            page.ended()
        page.check('parts of seven tokens join to what comes at once', whole.startswith(content()) or content().startswith(whole), (content(), whole))
        page.check('most of it', len(content()) > len(whole) * 0.6, (content(), whole))
    counted = page.text(f'{ANSWER} .facts')
    page.check('the tokens of all parts are counted', 'tokens' in counted, counted)
    page.reload()
    page.check('all of it is there after a reload', len(page.text(f'{ANSWER} .prose')) > len(first))

    page.fresh(2000)
    page.slow()
    page.begin('Write a very long, slow text about rivers, mountains and the sea.')
    page.wait('document.querySelector(".message.assistant .prose")?.textContent.length > 30')
    page.press('Escape')
    page.ended()
    first = content()
    page.run('window.endings = 0')
    page.act('go-on')
    page.wait(f'document.querySelector(".message.assistant .prose").textContent.length > {len(first)} + 30')
    page.press('Escape')
    page.ended()
    page.check('a stopped one too', content().startswith(first) and len(content()) > len(first) + 20)
    if page.mock:
        words = content().split(' ')
        page.check('no word is lost or twice', words[:-1] == [f'word{i}' for i in range(len(words) - 1)], words)
    page.browser.network()
    page.say('Thank you.')
    page.check('what others followed is not gone on with', page.count('.message.assistant:first-of-type [data-do=go-on]') == 0)


def attaches(page):
    """text files are attached by the button, a drop or a paste, with their size and tokens; others are refused in words"""
    page.fresh()
    folder = os.path.join(page.browser.profile, 'files')
    os.makedirs(folder, exist_ok=True)
    files = {
        'notes.py': b'def f():\n    return "```"\n',
        'umlaut.txt': 'Grüße, 世界\n'.encode(),
        'photo.png': b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR' + bytes(200),
        'latin.txt': 'Gr\xfc\xdfe'.encode('latin-1'),
        'empty.txt': b'',
        'huge.log': b'x' * (2 << 20),
        'long.txt': b'one two three ' * 30000,
        'wide.txt': 'über'.encode('utf-16'),
    }
    paths = {}
    for name, data in files.items():
        paths[name] = os.path.join(folder, name)
        with open(paths[name], 'wb') as file:
            file.write(data)

    def choose(*names):
        box = page.browser.call('Runtime.evaluate', expression=FILE_BOX)['result']['objectId']
        page.browser.call('DOM.setFileInputFiles', files=[paths[n] for n in names], objectId=box)

    choose('notes.py', 'umlaut.txt')
    page.wait('document.querySelectorAll(".attached").length === 2')
    page.check('the size and the tokens are shown', 'B · ' in page.text('.attached') and 'token' in page.text('.attached'), page.texts('.attached'))
    page.check('it can be sent without a word', not page.run('document.querySelector(".send").disabled'))
    for name, why in (
        ('photo.png', 'not a text file'),
        ('latin.txt', 'not a text file'),
        ('empty.txt', 'is empty'),
        ('huge.log', 'at most'),
        ('long.txt', 'tokens; the model reads'),
    ):
        choose(name)
        page.wait(f'[...document.querySelectorAll(".notice")].some((n) => n.textContent.includes({json.dumps(name)}))')
        notice = [t for t in page.texts('.notice') if name in t]
        page.check(f'{name}: {why}', len(notice) == 1 and why in notice[0], notice)
        page.click('.notice:last-child .icon-button')
    page.check('none of them is attached', page.count('.attached') == 2)
    choose('wide.txt')
    page.wait('document.querySelectorAll(".attached").length === 3')
    page.check('UTF-16 with its mark is text', page.count('.notice') == 0)
    page.click('.attached:last-child .icon-button')
    page.check('it can be taken away again', page.count('.attached') == 2 and page.focused('#box'))
    drop = '''(() => {
      const data = new DataTransfer();
      data.items.add(new File(["dropped text"], "drop.md"));
      const fire = (kind) => document.querySelector("#messages").dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data}));
      fire("dragenter");
      const seen = !document.querySelector("#drop").hidden;
      fire("dragover");
      fire("drop");
      return seen && document.querySelector("#drop").hidden;
    })()'''
    page.check('a drop shows where it goes', page.run(drop))
    page.wait('document.querySelectorAll(".attached").length === 3')
    page.run('''(() => {
      const data = new DataTransfer();
      data.items.add(new File(["pasted text"], "paste.csv"));
      document.querySelector("#box").dispatchEvent(new ClipboardEvent("paste", {bubbles: true, cancelable: true, clipboardData: data}));
    })()''')
    page.wait('document.querySelectorAll(".attached").length === 4')
    inspect(page, 'with files')
    page.shot('files-light')
    page.wait('document.querySelector(".meter").title.includes("next prompt")')
    page.reload()
    page.check('they are there after a reload', page.count('.attached') == 4)
    page.say('What does the file do?')
    page.check('they are sent and gone from the box', page.count('.attached') == 0 and page.count('.message.user .card') == 4)
    if page.mock:
        said = page.asked()['last']['messages'][-1]['content']
        for part in (
            'notes.py:\n````py\ndef f():\n    return "```"\n````',
            'umlaut.txt:\n```txt\nGrüße, 世界\n```',
            'drop.md:\n```md\ndropped text\n```',
            'paste.csv:\n```csv\npasted text\n```',
        ):
            page.check(f'{part[:10]}: a fenced block with its name', part in said, said)
        page.check('what was typed is behind them', said.endswith('\n\nWhat does the file do?'))
    page.click('.message.user .card summary')
    page.wait('document.querySelector(".message.user .card pre").textContent.startsWith("def f()")')
    page.reload()
    page.check('a message has its files after a reload', page.count('.message.user .card') == 4)
    page.shot('file-cards-light')
    page.press('ArrowUp')
    page.fill('.edit-box', 'And now?')
    page.run(
        'window.endings = 0; new MutationObserver(() => ++window.endings).observe(document.querySelector("#spoken"), {childList: true})'
    )
    page.press('Enter')
    page.ended()
    page.check('an edit keeps the files', page.count('.message.user .card') == 4 and page.text('.message.user .said') == 'And now?')
    page.browser.scheme('dark')
    page.browser.size(390, 844, phone=True)
    choose('notes.py')
    page.wait('document.querySelectorAll(".attached").length === 1')
    inspect(page, 'files on a phone, dark')
    page.shot('files-phone-dark')


def shows_tokens(page):
    """a switch shows an answer's tokens; one that is pointed at, tapped or walked to shows what else was likely"""
    page.fresh()
    page.press('s', alt=True)
    page.click('#probabilities-on')
    page.press('s', alt=True)
    page.check('a chip says that it is on', 'Tokens’ probabilities' in page.texts('.chip'))
    page.run('''window.drawn = new Set();
      new MutationObserver(() => drawn.add(document.querySelectorAll(".token").length)).observe(document.querySelector("#messages"), {childList: true, subtree: true})''')
    page.say('Repeat after me: Zürich 😀 is a city, and\n*these* are stars.')
    if page.mock:
        body = page.asked()['last']
        page.check('they are asked for', body['logprobs'] is True and body['top_logprobs'] >= 3, body)
    page.check('they came by steps', page.run('drawn.size') > 3, page.run('drawn.size'))
    shown = page.run(
        '''[...document.querySelectorAll(".tokens > *")].map((t) => [...t.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join("")).join("")'''
    )
    (answer,) = [n['content'] for c in page.stored().values() for n in c['nodes'].values() if n['role'] == 'assistant']
    page.check('together they are the answer', shown.startswith(answer) if page.mock else answer.strip() in shown, (shown, answer))
    page.hover('.token:nth-child(2)')
    page.seen('.token-card')
    rows = page.texts('.token-card li')
    page.check('the alternatives and their shares', len(rows) >= 3 and all('%' in row for row in rows), rows)
    page.check('the one that was drawn is marked', page.count('.token-card .chosen') == 1)
    page.shot('tokens-light')
    inspect(page, 'tokens, light')
    page.browser.mouse('mouseMoved', [5, 5])
    page.wait('document.querySelector(".token-card").hidden')
    page.click('.token:nth-child(3)')
    page.browser.mouse('mouseMoved', [5, 5])
    page.check('a tap holds it', page.run('!document.querySelector(".token-card").hidden'))
    page.press('ArrowRight')
    page.check(
        'the arrows go on to the next, and a screen reader is told',
        page.focused('.token:nth-child(4)')
        and 'Instead: ' in page.run('document.activeElement.ariaLabel')
        and page.run('document.activeElement.ariaSelected') == 'true',
        page.run('document.activeElement.ariaLabel'),
    )
    page.check('one stop for the Tab key', page.count('.tokens [tabindex="0"]') == 1)
    page.press('Escape')
    page.check('Esc closes it', page.run('document.querySelector(".token-card").hidden'))
    if page.mock:
        parts = page.texts('.token .bytes')
        page.check('a part of a character is shown as its bytes', 'C3' in parts and 'F0' in parts and '9F' in parts, parts)
        part = page.run('[...document.querySelectorAll(".token")].findIndex((t) => t.querySelector(".bytes")?.textContent === "BC") + 1')
        page.hover(f'.token:nth-child({part})')
        page.seen('.token-card')
        page.check('and said to be one', 'A part of a character: bytes BC. With what stands before it: ü' in page.text('.token-card'), page.text('.token-card'))
        page.shot('token-bytes')
        rare = page.run('[...document.querySelectorAll(".token")].findIndex((t) => t.classList.contains("least")) + 1')
        page.hover(f'.token:nth-child({rare})')
        page.seen('.token-card')
        page.check('one that is not among the likeliest is there too', 'not among' in page.text('.token-card') and page.count('.token-card .chosen') == 1)
    page.browser.scheme('dark')
    page.browser.size(390, 844, phone=True)
    page.click('.token:nth-child(2)')
    page.seen('.token-card')
    inspect(page, 'tokens on a phone, dark')
    page.shot('tokens-phone-dark')
    page.browser.size(1280, 860)
    page.browser.scheme('light')
    page.seen('#sidebar')
    page.click('.chip')
    page.wait('document.activeElement.id === "probabilities-on"')
    page.click('#probabilities-on')
    page.wait('!document.querySelector(".token") && document.querySelector(".message.assistant .prose")')
    page.click('#probabilities-on')
    page.seen('.token')
    page.check('the switch works on what is there', page.count('.message.assistant .prose') == 0)
    page.press('s', alt=True)
    page.reload()
    page.check('they are not kept with the conversation', page.count('.token') == 0 and page.count(f'{ANSWER} .prose') == 1)
    page.check('nor in the browser', page.run('!JSON.stringify(Object.entries(localStorage)).includes("logprob")'))


def chooses_model(page):
    """the list of models says what each can do; another one goes on with the same conversation"""
    if page.mock:
        page.set_mock(two_models=True)
    try:
        page.fresh()
        first = page.say('Who are you?')
        page.press('m', alt=True)
        page.seen('#models')
        page.wait('document.querySelector("#models :checked")')
        names = page.run('[...document.querySelectorAll("#models label")].map((l) => l.firstChild.data)')
        page.check('every model is listed', len(names) == (2 if page.mock else 1), names)
        page.check('the one in use is chosen and has the focus', page.focused('#models input:checked') and page.text('#model') == names[0])
        about = page.text('.about')
        page.check('its context and what it can do', 'tokens' in about and 'Answers messages' in about, about)
        inspect(page, 'models, light')
        page.shot('models-light')
        if page.mock:
            page.press('ArrowDown')
            page.check('the arrow keys choose', page.text('#model') == 'Qwen3-0.6B', page.text('#model'))
            page.check('the other one calls tools', 'Calls tools · Thinks before it answers' in page.texts('.about')[1], page.texts('.about'))
        page.browser.scheme('dark')
        inspect(page, 'models, dark')
        page.browser.size(390, 844, phone=True)
        inspect(page, 'models on a phone')
        page.shot('models-phone-dark')
        page.press('Escape')
        page.browser.size(1280, 860)
        if not page.mock:
            return
        page.check('the context is the other model’s', '32,768' in page.text('.meter'), page.text('.meter'))
        page.check('the conversation is there', page.answer() == first)
        page.say('And you?')
        body = page.asked()['last']
        page.check('the other one is asked, with all that was said', body['model'] == 'Qwen3-0.6B' and len(body['messages']) == 3, body)
        page.reload()
        page.wait('document.querySelector("#model").textContent === "Qwen3-0.6B"')
        page.set_mock(two_models=False)
        page.click('#model')
        page.seen('#models')
        page.wait('document.querySelector("#models .hint").textContent.includes("not served now")')
        page.check('one that is gone is told', page.text('#model') == 'SmolLM2-135M-Instruct')
        page.press('Escape')
        page.check('Esc gives the focus back', page.focused('#model'))
    finally:
        if page.mock:
            page.set_mock(two_models=False)


STEPS = [measures, goes_on, attaches, shows_tokens, chooses_model]
