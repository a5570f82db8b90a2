"""lm-eval's local-completions with the server's own tokenizer, a made-up task of each kind; loglikelihoods equal Session::score."""
import functools
import os
import pathlib
import subprocess
import tempfile

os.environ.update(HF_HUB_OFFLINE='1', HF_DATASETS_OFFLINE='1', TOKENIZERS_PARALLELISM='false', TQDM_DISABLE='1')

import lm_eval
import lm_eval.tasks

from . import NotApplicable, same

MADE_UP = pathlib.Path(__file__).parent / 'made_up'


@functools.cache
def results(url, key, model, concurrent=1):
    """What lm-eval says of the made-up tasks, whose data it is told the place of."""
    os.environ['OPENAI_API_KEY'] = key
    with tempfile.TemporaryDirectory() as folder:
        for file in MADE_UP.glob('*.yaml'):
            pathlib.Path(folder, file.name).write_text(file.read_text().replace('DATA', str(MADE_UP / 'colours.jsonl')))
        os.environ['HF_DATASETS_CACHE'] = folder
        manager = lm_eval.tasks.TaskManager(include_path=folder, include_defaults=False)
        return lm_eval.simple_evaluate(
            model='local-completions', model_args={'model': model, 'base_url': url + '/v1/completions', 'num_concurrent': concurrent, 'max_length': 2048, 'auth_token': key},
            tasks=['made_up_colours', 'made_up_stories', 'made_up_answers'], task_manager=manager, log_samples=True, bootstrap_iters=0, batch_size=3)


def scores_of(t, prompts):
    """Session::score of the tokens of each prompt but the first."""
    if not t.score:
        raise NotApplicable('there is nothing to compare with: --score "PROGRAM MODEL"')
    lines = '\n'.join(' '.join(map(str, ids)) for ids in prompts) + '\n'
    run = subprocess.run(t.score, input=lines, capture_output=True, text=True, check=True)
    return [[float(score) for score in line.split(' ')] for line in run.stdout.splitlines()]


def ids_of(t, text):
    return t.post('/tokenize', {'prompt': text, 'add_special_tokens': False}).json()['tokens']


def check_tokenizer(t):
    """lm-eval: tokenizer_backend "auto" finds /tokenizer_info, /tokenize and /detokenize"""
    from lm_eval.utils import RemoteTokenizer, check_remote_tokenizer_support
    assert check_remote_tokenizer_support(t.url + '/v1/completions', auth_token=t.key)
    tokenizer = RemoteTokenizer(t.url + '/v1/completions', auth_token=t.key)
    text = "Once upon a time, größer 家 🏠"
    same(tokenizer.decode(tokenizer.encode(text)).strip(), text)
    same(len(tokenizer.encode(tokenizer.eos_token)), 1)


def check_first_example(t):
    """lm-eval: simple_evaluate of multiple_choice, loglikelihood_rolling and generate_until"""
    said = results(t.url, t.key, t.model)['results']
    assert 0 <= said['made_up_colours']['acc,none'] <= 1
    assert said['made_up_stories']['byte_perplexity,none'] > 1
    assert 'exact_match,none' in said['made_up_answers']


def check_concurrent(t):
    """lm-eval: with num_concurrent 3 the same numbers come"""
    def numbers(said):
        return {task: [each['resps'] for each in sorted(samples, key=lambda sample: sample['doc_id'])] for task, samples in said['samples'].items()}
    same(numbers(results(t.url, t.key, t.model, 3)), numbers(results(t.url, t.key, t.model)))


def check_loglikelihoods(t):
    """lm-eval: loglikelihoods of choices are Session::score's, to the last digit"""
    samples = results(t.url, t.key, t.model)['samples']['made_up_colours']
    asked, got = [], []
    for sample in samples:
        for (context, continuation), answers in zip(sample['arguments'], sample['resps']):
            asked.append((ids_of(t, context + continuation), len(ids_of(t, context))))
            got.append(float(answers[0][0]))
    same(len(asked), 12)
    wanted = [sum(scores[begin - 1:]) for (_, begin), scores in zip(asked, scores_of(t, [ids for ids, _ in asked]))]
    same(got, wanted)


def check_rolling(t):
    """lm-eval: loglikelihoods of whole texts are Session::score's, to the last digit"""
    samples = results(t.url, t.key, t.model)['samples']['made_up_stories']
    info = t.get('/tokenizer_info').json()
    first = ids_of(t, info['bos_token'] or info['eos_token'])[0]
    wanted = scores_of(t, [[first] + ids_of(t, sample['doc']['question']) for sample in samples])
    same([float(sample['resps'][0][0]) for sample in samples], [sum(scores) for scores in wanted])
