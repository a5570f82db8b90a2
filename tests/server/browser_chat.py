"""Steps of browser.py: what a reader does in a conversation. They run against a mock and against a server."""

import json
import os
import time

from page_driver import ANSWER


def streams(page):
    """a message is sent, its answer streams, and its figures are shown"""
    page.fresh()
    page.check('the model and its context are shown', 'tokens' in page.text('.meter') and page.text('#model'))
    page.shot('welcome-light')
    page.run('''window.lengths = new Set();
      new MutationObserver(() => lengths.add(document.querySelector(".message.assistant .prose")?.textContent.length ?? 0))
        .observe(document.querySelector("#messages"), {childList: true, subtree: true, characterData: true})''')
    page.begin('Tell me a long story of a slow fox.')
    page.ended()
    page.check('the answer grew by steps', page.run('lengths.size') > 4, page.run('lengths.size'))
    page.check(
        'tokens a second',
        'tokens/s' in page.text(f'{ANSWER} .facts') and '≈' not in page.text(f'{ANSWER} .facts'),
        page.text(f'{ANSWER} .facts'),
    )
    page.check('the context meter moved', page.run('document.querySelector(".track i").style.width') not in ('', '0%'))
    page.check(
        'the box is empty and has the focus',
        page.focused('#box') and page.run('document.querySelector("#box").value') == '',
    )
    page.check(
        'the answer is told to a screen reader, once',
        page.run('endings') == 1 and page.text('#spoken').startswith('Answer: '),
    )
    page.check('the title is the message', page.text('#title').startswith('Tell me a long story'))


def stops(page):
    """Esc and the button stop an answer; what is there is kept"""
    for way in ('key', 'button'):
        page.fresh(2000)
        page.slow()
        before = page.asked()['aborted'] if page.mock else 0
        page.begin('Write a very long, slow text about rivers, mountains and the sea.')
        page.wait('document.querySelector(".message.assistant .prose")?.textContent.length > 20')
        page.type('typed meanwhile')
        page.press('Escape') if way == 'key' else page.click('.send.stop')
        page.ended(5)
        page.check('it says so', page.text(f'{ANSWER} .ending') == 'Stopped.', page.text(f'{ANSWER} .ending'))
        text = page.text(f'{ANSWER} .prose')
        page.check('the text is kept', len(text) > 20)
        page.check(
            'what was typed meanwhile is kept', page.run('document.querySelector("#box").value') == 'typed meanwhile'
        )
        if page.mock:
            end = time.monotonic() + 3
            while page.asked()['aborted'] == before and time.monotonic() < end:
                time.sleep(0.05)
            page.check('the server sees that the reader went away', page.asked()['aborted'] == before + 1)
        page.browser.network()
        page.reload()
        page.check('the text is there after a reload', page.text(f'{ANSWER} .prose') == text)
        page.check(
            'what was typed is there after a reload',
            page.run('document.querySelector("#box").value') == 'typed meanwhile',
        )


def follows(page):
    """the page follows an answer until the reader scrolls up, be it by a little"""
    page.fresh(2000)
    page.slow()
    page.browser.size(1280, 400)
    page.begin('Write a very long, slow text about rivers, mountains and the sea.')
    left = 'document.querySelector("#scroller").scrollHeight - document.querySelector("#scroller").scrollTop - document.querySelector("#scroller").clientHeight'
    page.wait('document.querySelector("#scroller").scrollTop > 120', 30)
    page.check('it follows', page.run(left) < 40, page.run(left))
    page.browser.call('Input.dispatchMouseEvent', type='mouseWheel', x=700, y=150, deltaX=0, deltaY=-60)
    page.wait('!document.querySelector(".jump").hidden', 30)
    page.wait(f'({left}) > 100', 30)  # it stays where the reader is, and the answer goes on below
    page.click('.jump')
    page.wait(f'({left}) < 40')
    page.press('Escape')
    page.ended()
    page.press('PageUp')
    page.wait(f'({left}) > 60')


def edits(page):
    """a message is edited from the keyboard; the arrows lead back to what was there"""
    page.fresh()
    first = page.say('What is one and one?')
    page.press('ArrowUp')
    page.check(
        'the last message is in a box',
        page.focused('.edit-box') and page.run('document.activeElement.value') == 'What is one and one?',
    )
    page.fill('.edit-box', 'What is two and two?')
    page.reload()
    page.check(
        'an edit that was not sent survives a reload',
        page.run('document.querySelector(".edit-box")?.value') == 'What is two and two?',
    )
    page.run(
        'window.endings = 0; new MutationObserver(() => ++window.endings).observe(document.querySelector("#spoken"), {childList: true})'
    )
    page.focus('.edit-box')
    page.press('Enter')
    page.ended()
    second = page.answer()
    page.check('the new message is shown', page.text('.message.user .said') == 'What is two and two?')
    page.check('it is the second of two', page.version('.message.user') == '2/2')
    page.act('previous', '.message.user')
    page.check(
        'the arrow shows the first and its answer',
        page.text('.message.user .said') == 'What is one and one?' and page.answer() == first,
    )
    page.check('the focus stays at the arrows', page.focused('[data-do=next]'))
    page.press('Enter')
    page.check('and back', page.version('.message.user') == '2/2' and page.answer() == second)
    page.press('Escape')


def regenerates(page):
    """another answer stands beside the first; an answer can be edited"""
    page.fresh()
    page.say('Name a colour.')
    for number in (2, 3):
        page.run('window.endings = 0')
        page.act('again')
        page.ended()
        page.check('a further version', page.version() == f'{number}/{number}', page.version())
    third = page.answer()
    page.act('previous')
    page.check('the second is shown', page.version() == '2/3')
    page.act('next')
    page.check('the third is shown', page.answer() == third)
    page.act('edit')
    page.fill('.edit-box', 'Blue, *as I say*.')
    page.press('Enter', control=True)
    page.wait(f'document.querySelector({json.dumps(ANSWER)}).textContent.includes("4/4")')
    page.check(
        'the edited answer is a version',
        page.text(f'{ANSWER} .prose') == 'Blue, as I say.' and page.count(f'{ANSWER} .prose em') == 1,
    )
    page.check('and says that it is', 'edited' in page.text(f'{ANSWER} .facts'))
    page.say('And another one?')
    if page.mock:
        said = [m['content'] for m in page.asked()['last']['messages']]
        page.check(
            'the model is told what is shown', said == ['Name a colour.', 'Blue, *as I say*.', 'And another one?'], said
        )


def branches(page):
    """a branch is a conversation of its own; a reload shows the same"""
    page.fresh()
    page.say('Question one.')
    page.say('Question two.')
    page.act('branch', '.message.assistant')
    page.wait('document.querySelectorAll(".message").length === 2')
    page.check('two conversations are listed', page.count('#list li') == 2)
    page.say('Question three.')
    shown = page.texts('.message .body')
    page.reload()
    page.check('a reload shows the same messages', page.texts('.message .body') == shown and len(shown) == 4, shown)
    page.check('figures are there after a reload', 'tokens/s' in page.text(f'{ANSWER} .facts'))
    page.click('#list li:not(.current) a')
    page.check(
        'the first has its second question', page.texts('.message.user .said') == ['Question one.', 'Question two.']
    )
    page.run('history.back()')
    page.wait('document.querySelectorAll(".said")[1]?.textContent === "Question three."')


def finds(page):
    """conversations are searched, renamed, deleted and brought back from the keyboard"""
    page.fresh()
    page.say('The lighthouse of Alexandria')
    page.new()
    page.say('The hanging gardens')
    page.press('k', control=True)
    page.check('Ctrl+K goes to the search', page.focused('#search'))
    page.type('alexandria')
    page.wait('document.querySelectorAll("#list li").length === 1')
    page.check('what was found is marked', page.text('#list mark') == 'Alexandria')
    page.press('Enter')
    page.check('Enter opens it', page.text('#title') == 'The lighthouse of Alexandria')
    page.fill('#search', '')
    page.hover('#list li.current a')
    page.click('#list li.current [aria-label^=Rename]')
    page.fill('.rename', 'Pharos')
    page.press('Enter')
    page.check('it is renamed', page.text('#title') == 'Pharos' and 'Pharos' in page.texts('#list .title'))
    page.hover('#list li.current a')
    page.click('#list li.current [aria-label^=Delete]')
    page.wait('document.querySelectorAll("#list li").length === 1')
    page.check('it is gone from the browser', len(page.stored()) == 1)
    page.click('.notice .text-button')
    page.wait('document.querySelectorAll("#list li").length === 2')
    page.check('and back', page.text('#title') == 'Pharos' and len(page.stored()) == 2)


def sets(page):
    """system prompt and sampling settings are kept with the conversation and sent"""
    page.fresh()
    page.press('s', alt=True)
    page.seen('#settings')
    page.check('the focus is in the settings', page.focused('#system'))
    page.fill('#system', 'Answer in one word.')
    values = {
        'temperature': 0.5,
        'top_p': 0.9,
        'top_k': 40,
        'min_p': 0.05,
        'repetition_penalty': 1.1,
        'frequency_penalty': 0.2,
        'presence_penalty': -0.1,
        'max_tokens': 24,
        'seed': 7,
    }
    for name, value in values.items():
        page.fill(f'#set-{name}', str(value))
    page.fill('#stop', 'END\n\\n\\n')
    page.fill('#set-top_p', '3')
    page.check(
        'a value out of range is told',
        page.text('#set-top_p-fault') == 'From 0 to 1.'
        and page.run('document.querySelector("#set-top_p").ariaInvalid') == 'true',
    )
    page.fill('#set-top_p', '0.9')
    page.shot('settings-light')
    page.say('Name a fruit.')
    if page.mock:
        body = page.asked()['last']
        page.check(
            'all are in the request', {k: body[k] for k in values} == values and body['stop'] == ['END', '\n\n'], body
        )
        page.check(
            'so is the system prompt', body['messages'][0] == {'role': 'system', 'content': 'Answer in one word.'}
        )
        page.check(
            'it asks for a stream with its usage',
            body['stream'] is True and body['stream_options'] == {'include_usage': True, 'continuous_usage_stats': True},
        )
    page.reload()
    page.check('they are there after a reload', page.run('document.querySelector("#set-seed").value') == '7')
    page.click('#settings-form section.row button:last-child')
    if page.mock:
        page.say('Name a tree.')
        page.check(
            'cleared ones are not sent',
            set(page.asked()['last']) == {'model', 'messages', 'stream', 'stream_options'},
            page.asked()['last'],
        )
    page.click('.notice .text-button')
    page.check(
        'clearing can be undone',
        page.run('document.querySelector("#set-seed").value') == '7'
        and page.run('document.querySelector("#system").value') == 'Answer in one word.',
    )
    page.press('s', alt=True)


def answers_json(page):
    """the JSON Schema box: a wrong schema is told and nothing is lost; an answer fits the schema"""
    page.fresh(512)
    page.press('s', alt=True)
    page.click('#schema-on')
    page.fill('#schema', '{"type": "object",\n "properties": }')
    page.check('where it is wrong is told', 'line 2' in page.text('#schema-fault'), page.text('#schema-fault'))
    page.fill('#box', 'Who wrote the first program, and when?')
    page.press('Enter')
    page.check(
        'nothing is sent, and the text is kept',
        page.count('.message') == 0 and page.run('document.querySelector("#box").value').startswith('Who wrote'),
    )
    page.check('the focus is at the schema', page.focused('#schema'))
    page.click('#settings-form .text-button')
    page.say('Who wrote the first program, and when?')
    shown = json.loads(page.text(f'{ANSWER} .code pre'))
    page.check(
        'the answer fits the schema',
        set(shown) == {'name', 'year'} and isinstance(shown['name'], str) and isinstance(shown['year'], int),
        shown,
    )
    page.shot('schema-light')
    if page.mock:
        kind = page.asked()['last']['response_format']
        page.check(
            'the schema is in the request',
            kind['type'] == 'json_schema' and kind['json_schema']['schema']['required'] == ['name', 'year'],
            kind,
        )
    page.press('s', alt=True)


def moves(page):
    """all conversations leave as JSON and come back the same; one leaves as Markdown"""
    page.fresh()
    page.say('First, with *stars*.')
    page.run('window.endings = 0')
    page.act('again')
    page.ended()
    page.new()
    page.say('Second.')
    kept = page.stored()
    page.click('#export')
    page.click('#export-one')
    end = time.monotonic() + 10
    files = []
    while len(files) < 2 and time.monotonic() < end:
        time.sleep(0.1)
        files = (
            [f for f in os.listdir(page.browser.downloads) if f.endswith(('.json', '.md'))]
            if os.path.isdir(page.browser.downloads)
            else []
        )
    page.check('two files', sorted(f.split('.')[-1] for f in files) == ['json', 'md'], files)
    paths = {f.split('.')[-1]: os.path.join(page.browser.downloads, f) for f in files}
    with open(paths['md'], encoding='utf-8') as file:
        page.check(
            'the Markdown has both sides', '## You\n\nSecond.' in (text := file.read()) and text.count('## ') == 2
        )
    page.run('localStorage.clear()')
    page.open()
    page.wait('document.querySelector("#list .empty")')
    box = page.browser.call('Runtime.evaluate', expression='document.querySelector("#file")')['result']['objectId']
    page.browser.call('DOM.setFileInputFiles', files=[paths['json']], objectId=box)
    page.wait('document.querySelectorAll("#list li").length === 2')
    back = page.stored()
    tree = lambda all_: {
        i: (c['title'], c['chosen'], {n['id']: (n['parent'], n['role'], n['content']) for n in c['nodes'].values()})
        for i, c in all_.items()
    }
    page.check('the same conversations', tree(back) == tree(kept))
    page.browser.call('DOM.setFileInputFiles', files=[paths['json']], objectId=box)
    page.wait('[...document.querySelectorAll(".notice")].some((n) => n.textContent.includes("were here already"))')
    page.check('a second import adds nothing', len(page.stored()) == 2)
    page.browser.call('DOM.setFileInputFiles', files=[paths['md']], objectId=box)
    page.wait('document.querySelector(".notice.lasting")?.textContent.includes("not JSON")')


def types_markup(page):
    """what a reader types is text, whatever it says"""
    page.fresh()
    hostile = '<script>window.hacked=1</script><img src=x onerror="window.hacked=2"> **no stars** & &amp;'
    page.say(hostile)
    page.check('it is shown as typed', page.text('.message.user .said') == hostile)
    page.check('in the list too', hostile[:20] in page.text('#list .title'))
    page.check(
        'nothing of it ran',
        page.run('window.hacked') is None and page.count('#messages script, #messages img, #messages iframe') == 0,
    )


def writes_markup(page):
    """a model that is made to write <script>, by a schema, writes text"""
    page.fresh(512)
    hostile = '<script>window.hacked=1</script><img src=x onerror=window.hacked=2><iframe src=javascript:window.hacked=3>'
    page.press('s', alt=True)
    page.click('#schema-on')
    page.fill('#schema', json.dumps({'const': hostile}))
    page.say('Write a script.')
    shown = page.text(f'{ANSWER} .prose')
    page.check('it is shown as written', hostile in shown, shown)
    page.check(
        'nothing of it ran',
        page.run('window.hacked') is None and page.count('#messages :is(script, img, iframe)') == 0,
    )
    page.shot('markup-light')
    page.press('s', alt=True)


STEPS = [streams, stops, follows, edits, regenerates, branches, finds, sets, answers_json, moves, types_markup]
LIVE_STEPS = [writes_markup]  # the mock writes markup of itself: browser_trouble.py
