"""Steps of browser.py: light and dark, wide and narrow, names and contrast for everyone; the status page."""

import json

# Text whose contrast with what is behind it is under 4.5 (3 for large text): WCAG 2's AA.
CONTRAST = '''(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  canvas.canvas.width = canvas.canvas.height = 1;
  const paint = (colours) => {
    canvas.fillStyle = '#fff';
    canvas.fillRect(0, 0, 1, 1);
    for (const c of colours) { canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (node.closest('.visually-hidden, noscript, script, button:disabled')) continue;
    const style = getComputedStyle(node);
    const behind = [];
    for (let at = node; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const back = luminance(paint(behind)), front = luminance(paint([...behind, node instanceof SVGElement ? style.fill : style.color]));
    const ratio = (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push([walker.currentNode.data.trim().slice(0, 30), node.className?.baseVal ?? node.className, ratio.toFixed(2)]);
  }
  return found;
})()'''


def unnamed(page):
    """Controls that a screen reader has no name for."""
    nodes = page.browser.call('Accessibility.getFullAXTree')['nodes']
    roles = {
        'button',
        'textbox',
        'searchbox',
        'link',
        'checkbox',
        'dialog',
        'meter',
        'navigation',
        'complementary',
        'main',
        'form',
        'img',
        'article',
    }
    return [
        node['role']['value']
        for node in nodes
        if not node.get('ignored')
        and node.get('role', {}).get('value') in roles
        and not node.get('name', {}).get('value', '').strip()
    ]


def inspect(page, what):
    page.check(f'{what}: contrast', (found := page.run(CONTRAST)) == [], found)
    page.check(f'{what}: every control has a name', (found := unnamed(page)) == [], found)
    page.check(
        f'{what}: nothing is wider than the page', page.run('document.scrollingElement.scrollWidth <= innerWidth')
    )
    ids = page.run(
        '(() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id); return ids.filter((id, i) => ids.indexOf(id) !== i); })()'
    )
    page.check(f'{what}: no id twice', ids == [], ids)


def looks(page):
    """light and dark, desktop and phone: contrast, names, no sideways scrolling"""
    page.fresh()
    page.say('think about pages, in markdown')
    page.say('Thank you. What of the first page?')
    page.press('s', alt=True)
    page.seen('#settings')
    for scheme in ('light', 'dark'):
        page.browser.scheme(scheme)
        page.browser.size(1440, 900)
        inspect(page, f'desktop, {scheme}')
        page.shot(f'settings-wide-{scheme}')
    page.press('s', alt=True)
    for scheme in ('light', 'dark'):
        page.browser.scheme(scheme)
        page.browser.size(1280, 860)
        page.run('document.querySelector("#scroller").scrollTop = 0')
        page.shot(f'conversation-{scheme}')
        page.browser.size(390, 844, phone=True)
        page.wait('document.querySelector("#sidebar").hidden')
        inspect(page, f'phone, {scheme}')
        page.shot(f'phone-{scheme}')
        page.click('#open-sidebar')
        page.seen('#sidebar')
        page.check('the page under the list cannot be reached', page.run('document.querySelector("#middle").inert'))
        inspect(page, f'list on a phone, {scheme}')
        page.shot(f'phone-list-{scheme}')
        page.press('Escape')
        page.check(
            'Esc closes it, and the focus is back',
            page.run('document.querySelector("#sidebar").hidden') and page.focused('#open-sidebar'),
        )
        page.click('#open-settings')
        page.seen('#settings')
        inspect(page, f'settings on a phone, {scheme}')
        page.shot(f'phone-settings-{scheme}')
        page.click('#close-settings')


def switches(page):
    """the switch of the look holds against the system's, and after a reload"""
    page.fresh()
    ground = lambda: page.run('getComputedStyle(document.body).backgroundColor')
    light = ground()
    page.browser.scheme('dark')
    dark = ground()
    page.check('it follows the system', light != dark)
    page.click('#look')
    page.check('light in a dark system', ground() == light)
    page.reload()
    page.check('after a reload', ground() == light)
    page.click('#look')
    page.check('dark', ground() == dark)
    page.click('#look')
    page.browser.scheme('light')
    page.check('as the system again', ground() == light)


def helps(page):
    """? lists the keys; the dialog gives the focus back"""
    page.fresh()
    page.focus('#open-help')
    page.press('?', 'Slash', shift=True)
    page.seen('#help')
    inspect(page, 'help')
    page.shot('help-light')
    page.press('Escape')
    page.check(
        'closed, with the focus back', page.run('!document.querySelector("#help").open') and page.focused('#open-help')
    )
    order = []
    page.run('document.activeElement.blur()')
    for _ in range(24):
        page.press('Tab')
        order.append(
            page.run('document.activeElement.id || document.activeElement.ariaLabel || document.activeElement.tagName')
        )
    order = order[order.index('skip') :] if 'skip' in order else []
    page.check(
        'Tab goes from the skip link through the list to the box',
        'box' in order[order.index('search') :] if 'search' in order else False,
        order,
    )


def draws_status(page):
    """the live view draws queue, batch, pages, tokens and latencies, and names the values under the pointer"""
    page.browser.size(1440, 1000)
    page.browser.scheme('light')
    page.open('status')
    page.wait('document.querySelector("#state").dataset.state === "ready"')
    page.run('new Promise((done) => setTimeout(done, 4500))')
    titles = page.texts('.chart h2')
    page.check(
        'the plots',
        {'Queue', 'Tokens', 'Batch', 'Pages', 'Time to first token', 'Time between tokens'} <= set(titles),
        titles,
    )
    lines = page.run(
        'Object.fromEntries([...document.querySelectorAll(".chart")].map((c) => [c.querySelector("h2").textContent, [...c.querySelectorAll(".line")].map((l) => l.getAttribute("d"))]))'
    )
    for title in ('Queue', 'Pages', 'Batch', 'Tokens'):
        page.check(f'{title} has lines of several points', any(d.count('L') >= 2 for d in lines[title]), lines[title])
    page.check('no value is not a number', 'NaN' not in json.dumps(lines) and 'undefined' not in page.text('body'))
    page.check(
        'axes with units',
        page.run('[...document.querySelectorAll(".chart")].every((c) => c.querySelectorAll(".tick").length >= 5)'),
    )
    place = page.run(
        '(() => { const r = document.querySelector(".plot").getBoundingClientRect(); return [r.right - 14, r.top + 60]; })()'
    )
    page.browser.call('Input.dispatchMouseEvent', type='mouseMoved', x=place[0], y=place[1])
    page.check('the cursor stands in every plot', page.count('.cursor path') == len(titles))
    inspect(page, 'status, light')
    page.shot('status-light')
    page.browser.scheme('dark')
    inspect(page, 'status, dark')
    page.shot('status-dark')
    page.browser.size(390, 844, phone=True)
    page.run('new Promise((done) => setTimeout(done, 300))')
    inspect(page, 'status on a phone')
    page.shot('status-phone-dark')


def loses_the_server(page):
    """a server that does not answer is told, and asked again until it does"""
    page.browser.size(1280, 860)
    page.browser.scheme('light')
    page.open('status')
    page.wait('document.querySelector("#state").dataset.state === "ready"')
    page.browser.network(offline=True)
    page.wait('document.querySelector("#state").dataset.state === "lost"')
    page.check('in words', 'Trying again' in page.text('#state'), page.text('#state'))
    page.browser.network(offline=False)
    page.wait('document.querySelector("#state").dataset.state === "ready"')
    page.browser.complaints = [text for text in page.browser.complaints if 'ERR_INTERNET_DISCONNECTED' not in text]
    page.fresh()
    page.browser.network(offline=True)
    page.say('Is anyone there?')
    page.check('the conversation says so', 'cannot be reached' in page.text('.problem strong'), page.text('.problem'))
    page.browser.network(offline=False)
    page.run('window.endings = 0')
    page.click('.problem .button')
    page.ended()
    page.check('and goes on', page.count('.problem') == 0 and len(page.answer()) > 0)
    page.browser.complaints = [text for text in page.browser.complaints if 'ERR_INTERNET_DISCONNECTED' not in text]


STEPS = [looks, switches, helps, draws_status, loses_the_server]
