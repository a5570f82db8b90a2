"""Checks of a running tessera-server by the clients that people use. A module is a client; the first line of its documentation is what
the table says that was tried. A check is a function check_NAME(target), documented by a line that says what it promises. It fails by
raising, and raises NotApplicable where this server or this model cannot be asked."""
import dataclasses
import functools


class NotApplicable(Exception):
    pass


@dataclasses.dataclass
class Target:
    url: str  # without a slash at its end
    key: str  # "none" if there is none
    score: list = dataclasses.field(default_factory=list)  # the command that writes Session::score of the model; empty: there is none

    def get(self, path):
        import httpx
        return httpx.get(self.url + path, headers=self.headers, timeout=60)

    def post(self, path, body, **more):
        import httpx
        return httpx.post(self.url + path, json=body, headers=self.headers, timeout=300, **more)

    @property
    def headers(self):
        return {'Authorization': f'Bearer {self.key}', 'x-api-key': self.key}

    @functools.cached_property
    def model(self):
        return self.get('/v1/models').json()['data'][0]['id']

    def wait_until_idle(self, seconds=5.0):
        """What was asked for has ended, or this raises."""
        import time
        end = time.monotonic() + seconds
        while True:
            status = self.get('/status.json').json()
            if status['running'] == 0 and status['waiting'] == 0:
                return status
            assert time.monotonic() < end, f'{status["running"]} requests still run after {seconds} s'
            time.sleep(0.05)


@dataclasses.dataclass
class Outcome:
    name: str
    state: str  # "passed", "failed", "not applicable"
    why: str = ''


def same(got, wanted, what=''):
    assert got == wanted, f'{what or "this"} is {got!r}, not {wanted!r}'


def raises(kind, call, status, param=None):
    """`call` must fail with this class of the client's errors."""
    try:
        call()
    except kind as error:
        same(type(error).__name__, kind.__name__, 'the class of the error')
        same(error.status_code, status, 'the status')
        if param is not None:
            same(error.param, param, 'the field')
        return error
    raise AssertionError(f'no {kind.__name__} was raised')
