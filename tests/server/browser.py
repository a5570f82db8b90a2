#!/usr/bin/env python3
"""The server's page in headless Chromium: browser.py [URL] [--shots FOLDER] [--chromium PROGRAM]

With a URL: what a reader does with a running tessera-server. Without: the same against page_mock.py, and besides what a
model cannot be asked to do (errors, a hostile answer, a slow one, tool calls). Python is needed for this check only, and
its standard library is enough. Status 77: there is no Chromium.
"""

import argparse
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser_chat  # noqa: E402
import browser_look  # noqa: E402
import browser_parts  # noqa: E402
import browser_trouble  # noqa: E402
import devtools  # noqa: E402
import page_mock  # noqa: E402
from page_driver import Page  # noqa: E402

FOLDER = pathlib.Path(__file__).parents[2] / 'examples/server/page'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('url', nargs='?', help='of a running server, e.g. http://127.0.0.1:8080/')
    parser.add_argument('--shots', help='a folder for screenshots')
    parser.add_argument('--only', help='steps whose name has this in it')
    parser.add_argument('--chromium', default='chromium')
    options = parser.parse_args()
    if not shutil.which(options.chromium):
        print(f'SKIPPED the page in a browser: there is no {options.chromium}')
        return 77
    server = None if options.url else page_mock.serve(FOLDER)
    url = options.url or f'http://127.0.0.1:{server.server_address[1]}/'
    if options.shots:
        pathlib.Path(options.shots).mkdir(parents=True, exist_ok=True)

    browser = devtools.Browser(options.chromium)
    page = Page(browser, url.rstrip('/') + '/', mock=server is not None, shots=options.shots)
    steps = browser_chat.STEPS + browser_parts.STEPS + browser_look.STEPS + (browser_trouble.STEPS if server else browser_chat.LIVE_STEPS)
    steps = [step for step in steps if (options.only or '') in step.__name__]
    failed = 0
    try:
        for step in steps:
            try:
                step(page)
                page.check(
                    'no error in the console, nothing refused by the policy', not page.complaints(), page.complaints()
                )
                print(f'ok      {step.__doc__.splitlines()[0]}', flush=True)
            except Exception as error:  # a step that cannot go on has failed, whatever it met
                failed += 1
                print(f'FAILED  {step.__doc__.splitlines()[0]}\n        {type(error).__name__}: {error}', flush=True)
                page.shot(f'failed-{step.__name__}')
            browser.complaints.clear()
        foreign = page.foreign()
        if foreign:
            failed += 1
            print(f'FAILED  everything comes from the server itself: {foreign}')
    finally:
        browser.close()
    print(f'{len(steps)} steps, {page.checks} checks, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
