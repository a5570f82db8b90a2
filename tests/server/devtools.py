"""Headless Chromium by the DevTools protocol over a pipe (--remote-debugging-pipe): the standard library is enough."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Failed(Exception):
    pass


class Browser:
    """One browser with one page. Console errors and what the content security policy refused are in `complaints`."""

    def __init__(self, program='chromium'):
        self.profile = tempfile.mkdtemp(prefix='browser-')
        self.downloads = os.path.join(self.profile, 'downloads')
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        # The browser reads descriptor 3 and writes 4; copies far up keep them from being closed by accident.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (to_read, to_write)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        arguments = [
            '--headless=new',
            '--no-sandbox',
            '--disable-gpu',
            '--disable-dev-shm-usage',
            '--no-first-run',
            '--hide-scrollbars',
            '--disable-background-networking',
            '--disable-extensions',
            '--mute-audio',
            # A mouse: headless Chromium has none, and pages look for one.
            '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4',
            '--remote-debugging-pipe',
            f'--user-data-dir={self.profile}',
        ]
        self.process = subprocess.Popen(
            [program, *arguments, 'about:blank'],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=place,
        )
        for fd in (to_read, to_write, *high):
            os.close(fd)
        self.buffer = b''
        self.number = 0
        self.session = None
        self.complaints = []
        self.requested = []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network', 'DOM'):
            self.call(f'{domain}.enable')
        self.call('Browser.setDownloadBehavior', whole=True, behavior='allow', downloadPath=self.downloads)

    def close(self):
        try:
            self.call('Browser.close', whole=True)
            self.process.wait(10)
        except (OSError, Failed, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self, timeout):
        """The next message, or None."""
        end = time.monotonic() + timeout
        while b'\0' not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                return None
            data = os.read(self.read_end, 1 << 20)
            if not data:
                raise Failed('the browser went away')
            self.buffer += data
        message, self.buffer = self.buffer.split(b'\0', 1)
        message = json.loads(message)
        self.note(message)
        return message

    def note(self, message):
        method, params = message.get('method'), message.get('params', {})
        if method == 'Network.requestWillBeSent':
            self.requested.append(params['request']['url'])
        elif method == 'Runtime.exceptionThrown':
            details = params['exceptionDetails']
            self.complaints.append(details.get('exception', {}).get('description') or details['text'])
        elif method == 'Runtime.consoleAPICalled' and params['type'] in ('error', 'assert'):
            self.complaints.append(' '.join(str(a.get('value', a.get('description'))) for a in params['args']))
        elif method == 'Log.entryAdded' and params['entry']['level'] == 'error':
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def call(self, method, whole=False, timeout=30, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session and not whole:
            message['sessionId'] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b'\0')
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            reply = self.read(end - time.monotonic())
            if reply and reply.get('id') == self.number:
                if 'error' in reply:
                    raise Failed(f"{method}: {reply['error']['message']}")
                return reply['result']
        raise Failed(f'{method}: no reply within {timeout} s')

    def run(self, expression):
        """The value of a JavaScript expression (a promise is awaited)."""
        result = self.call(
            'Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if 'exceptionDetails' in result:
            details = result['exceptionDetails']
            raise Failed(f"{expression[:200]}: {details.get('exception', {}).get('description', details['text'])}")
        return result['result'].get('value')

    def wait_for(self, expression, timeout=20):
        """The value of an expression as soon as there is one."""
        end = time.monotonic() + timeout
        while True:
            value = self.run(expression)
            if value:
                return value
            if time.monotonic() > end:
                raise Failed(f'not within {timeout} s: {expression}')
            time.sleep(0.02)

    def wait(self, expression, timeout=20):
        """Until an expression is true; of an element: until it is there."""
        self.wait_for(f'(({expression}) ? true : false)', timeout)

    def open(self, url):
        self.call('Page.navigate', url=url)
        self.wait('document.readyState === "complete"', 30)

    def size(self, width, height, phone=False):
        self.call(
            'Emulation.setDeviceMetricsOverride',
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        self.call('Emulation.setTouchEmulationEnabled', enabled=phone)

    def network(self, offline=False, bytes_a_second=-1):
        self.call(
            'Network.emulateNetworkConditions',
            offline=offline,
            latency=0,
            downloadThroughput=bytes_a_second,
            uploadThroughput=-1,
        )

    def scheme(self, name):
        self.call(
            'Emulation.setEmulatedMedia',
            features=[
                {'name': 'prefers-color-scheme', 'value': name},
                {'name': 'prefers-reduced-motion', 'value': 'reduce'},
            ],
        )

    def shot(self, path):
        data = self.call('Page.captureScreenshot', format='png')['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))

    def type(self, text):
        self.call('Input.insertText', text=text)

    def press(self, key, code=None, control=False, shift=False, alt=False):
        numbers = {'Enter': 13, 'Escape': 27, 'ArrowUp': 38, 'ArrowDown': 40, 'Tab': 9, 'PageUp': 33, 'PageDown': 34}
        number = numbers.get(key, ord(key.upper()) if len(key) == 1 else 0)
        event = {
            'key': key,
            'code': code or (f'Key{key.upper()}' if len(key) == 1 and key.isalpha() else key),
            'windowsVirtualKeyCode': number,
            'modifiers': alt * 1 + control * 2 + shift * 8,
        }
        if key == 'Enter' and not control:
            event['text'] = '\r'
        elif len(key) == 1 and not (control or alt):
            event['text'] = key
        self.call('Input.dispatchKeyEvent', type='keyDown', **event)
        event.pop('text', None)
        self.call('Input.dispatchKeyEvent', type='keyUp', **event)

    def place(self, selector):
        """The middle of the first element of a selector, which has to be seen and not be covered."""
        return self.wait_for(f'''(() => {{
          const found = document.querySelector({json.dumps(selector)});
          if (!found || !found.checkVisibility()) return null;
          found.scrollIntoView({{block: 'nearest'}});
          const r = found.getBoundingClientRect(), x = r.left + r.width / 2, y = r.top + r.height / 2;
          const top = document.elementFromPoint(x, y);
          return top && (found === top || found.contains(top) || top.contains(found)) ? [x, y] : null;
        }})()''')

    def mouse(self, kind, place):
        self.call(
            'Input.dispatchMouseEvent',
            type=kind,
            x=place[0],
            y=place[1],
            button='none' if kind == 'mouseMoved' else 'left',
            clickCount=1,
        )

    def hover(self, selector):
        self.mouse('mouseMoved', self.place(selector))

    def click(self, selector):
        place = self.place(selector)
        for kind in ('mouseMoved', 'mousePressed', 'mouseReleased'):
            self.mouse(kind, place)
