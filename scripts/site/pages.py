"""Makes the pages of the site of documents. mkdocs.yml names this file as a hook, and scripts/docs runs mkdocs.

A page keeps its path in the repository, so that its links stay true. The site has
- every Markdown file of FOLDERS, README.md and CHANGELOG.md, turned from GitHub's Markdown into Python-Markdown's;
- a page source/PATH for each source file or folder that a page links to;
- the reference of the headers by Doxygen, in api/, with its names in the search.
"""
import functools
import html
import json
import pathlib
import re
import xml.etree.ElementTree

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ['docs', 'bench', 'bindings', 'examples', 'models', 'tests', 'tools']
PICTURES = {'.png', '.svg'}
API = ROOT / 'build/docs/api/docs'
LANGUAGES = {'.c': 'c', '.cpp': 'cpp', '.hpp': 'cpp', '.cu': 'cpp', '.cuh': 'cpp', '.py': 'python', '.sh': 'bash', '.js': 'js', '.rs': 'rust', '.cs': 'csharp', '.java': 'java', '.go': 'go', '.css': 'css', '.html': 'html', '.json': 'json', '.txt': 'text'}

LINK = re.compile(r'(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))')
CODE = re.compile(r'(`+)(?!`).*?(?<!`)\1(?!`)')


def on_files(files, config):
    """Replaces the files of docs_dir by files of the repository. The files of the theme stay."""
    result = Files([file for file in files if file.src_dir != config.docs_dir])
    markdown = [ROOT / 'README.md', ROOT / 'CHANGELOG.md', *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob('*.md')))]
    sources = set()
    for path in markdown:
        result.append(from_repository(path, config))
        for line, is_code in lines_of(path.read_text()):
            if not is_code:
                sources |= {target for target in map(lambda link: resolve(path, link[1]), LINK.findall(without_code(line))) if is_source(target)}
    for path in sorted((ROOT / 'docs').rglob('*')):
        if path.suffix in PICTURES:
            result.append(from_repository(path, config))
    for path in list(sources):
        if path.is_dir():
            sources |= {file for file in path.rglob('*') if file.is_file() and is_text(file)}
    for path in sorted(sources):
        result.append(File.generated(config, source_page(path), content=source_text(path)))
    for name in ['iframe-worker.js', 'style.css']:
        result.append(File.generated(config, f'site/{name}', abs_src_path=str(ROOT / 'scripts/site' / name)))
    add_reference(result, config)
    return result


def on_nav(nav, config, files):
    """Puts the reference of the headers first under Reference. mkdocs does not know it, because it is no page of mkdocs."""
    for section in nav.items:
        if section.title == 'Reference':
            link = Link('API: every class and function', 'api/index.html')
            link.parent = section
            section.children.insert(0, link)
            return nav
    raise PluginError('mkdocs.yml: nav has no section "Reference", under which the API is to stand')


def on_page_markdown(markdown, page, config, files):
    """Turns GitHub's Markdown into Python-Markdown's, and links to source files into links to their pages."""
    uri = page.file.src_uri
    if uri.startswith('source/'):
        return markdown
    if uri == 'README.md':
        page.meta['hide'] = ['navigation']  # the tabs are enough
    elif not any(line.startswith('## ') and not is_code for line, is_code in lines_of(markdown)):
        page.meta['hide'] = ['toc']
    if uri == 'docs/headers.md':
        first, rest = re.sub(r'^\| `(\S+\.hpp)` \|', linked_header, markdown, flags=re.M).split('\n', 1)
        markdown = f'{first}\n\n**[Every class and function of the public headers](../api/index.html)**\n\n{rest}'
    result, before, is_numbered, was_code = [], '', False, False
    for line, is_code in lines_of(markdown):
        if re.match(r'\d+\. ', line):
            is_numbered = True
        elif line and not line.startswith(' ') and not is_code:
            is_numbered = False
        if not is_code:
            line = linked(line, ROOT / uri)
        # On GitHub a list, a table or a block of code may follow a text without an empty line. Python-Markdown needs the empty line.
        kind = kind_of(line) if not is_code or not was_code else ''
        if kind and before.strip() and kind != kind_of(before) and not before.startswith('<!--') and not (before.startswith(' ') and kind == 'list'):
            result.append('')
        if is_numbered and line.startswith('   '):
            line = ' ' + line  # Python-Markdown wants the text of an item indented by four columns
        result.append(line)
        before, was_code = line, is_code
    return '\n'.join(result)


@event_priority(-50)  # after the index of the search is written, before it is converted for pages that are opened as files
def on_post_build(config):
    """Adds the names of the headers to the search."""
    index_file = pathlib.Path(config.site_dir) / 'search/search_index.json'
    index = json.loads(index_file.read_text())
    index['docs'] += names_of_reference()
    index_file.write_text(json.dumps(index))


def from_repository(path, config):
    return File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))


def resolve(page, link):
    return (page.parent / link).resolve()


def is_source(path):
    return path.is_relative_to(ROOT) and path.exists() and path.suffix not in {'.md', '.html', *PICTURES}


def is_text(path):
    return '__pycache__' not in path.parts and b'\0' not in path.read_bytes()[:4096]


def source_page(path):
    """Returns the path in the site of a source's page. For a Markdown file it would end in .md twice, but no link leads to such a page."""
    return f'source/{path.relative_to(ROOT).as_posix()}' + ('/index.md' if path.is_dir() else '.md')


def source_text(path):
    title = f'# `{path.relative_to(ROOT).as_posix()}`\n\n'
    if path.is_dir():
        files = sorted(file for file in path.rglob('*') if file.is_file() and is_text(file))
        names = [file.relative_to(path).as_posix() for file in files]
        return title + '\n'.join(f'- [`{name}`]({name}.md)' for name in names) + '\n'
    text = path.read_text()
    fence = '`' * max(3, 1 + max((len(run) for run in re.findall('`+', text)), default=0))
    language = 'cmake' if path.name == 'CMakeLists.txt' else LANGUAGES.get(path.suffix, 'text')
    return f'---\nsearch: {{exclude: true}}\nhide: [navigation, toc]\n---\n{title}{fence}{language}\n{text}{fence}\n'


def lines_of(markdown):
    """Yields each line, and whether it belongs to a block of code (or is a fence of the block)."""
    fence = ''
    for line in markdown.splitlines():
        bare = line.lstrip()
        if fence:
            yield line, True
            if bare.startswith(fence) and not bare.strip('`'):
                fence = ''
        elif bare.startswith('```'):
            fence = '`' * (len(bare) - len(bare.lstrip('`')))
            yield line, True
        else:
            yield line, False


def without_code(line):
    return CODE.sub('', line)


def linked(line, page):
    """Returns the line with its links to source files changed to links to their pages. Text in backticks stays as it is."""
    code = [match.span() for match in CODE.finditer(line)]

    def changed(match):
        target = resolve(page, match[2])
        if any(begin < match.start() < end for begin, end in code) or not is_source(target):
            return match[0]
        up = '../' * (len(page.relative_to(ROOT).parts) - 1)
        return f'{match[1]}{up}{source_page(target)})'

    return LINK.sub(changed, line)


def kind_of(line):
    if re.match(r' *([-*]|\d+\.) ', line):
        return 'list'
    if line.startswith('|'):
        return 'table'
    return 'code' if line.lstrip().startswith('```') else ''


def add_reference(files, config):
    pages = API / 'html'
    if not (pages / 'index.html').is_file():
        raise PluginError(f'there is no reference of the headers in {pages}: run scripts/docs, which makes it')
    back = '<div id="documents"><a href="{}index.html">tessera: all documents</a></div>'
    for path in sorted(pages.rglob('*')):
        if not path.is_file():
            continue
        name = path.relative_to(pages).as_posix()
        if path.suffix == '.html' and '/' not in name:
            text = path.read_text().replace('<div id="titlearea">', back.format('../') + '<div id="titlearea">', 1)
            files.append(File.generated(config, f'api/{name}', content=text))
        elif name == 'doxygen.css':
            added = '\n#documents { padding: 8px 16px; background: #3f51b5; }\n#documents a { color: white; }\n'
            files.append(File.generated(config, f'api/{name}', content=path.read_text() + added))
        else:
            files.append(File.generated(config, f'api/{name}', abs_src_path=str(path)))


def linked_header(row):
    """Returns a row of docs/headers.md with a link from the header to its page by Doxygen."""
    for compound in tags('file'):
        if f"{compound.findtext('path')}{compound.findtext('name')}".endswith(f'/tessera/{row[1]}'):
            return f"| [`{row[1]}`](../api/{compound.findtext('filename')}) |"
    return row[0]


@functools.cache
def tags(*kinds):
    return [compound for compound in xml.etree.ElementTree.parse(API / 'tessera.tag').getroot() if compound.get('kind') in kinds]


def names_of_reference():
    """Returns entries for the search: each class, and each function and type of a class or namespace."""
    entries = []
    for compound in tags('class', 'struct', 'namespace'):
        kind, name = compound.get('kind'), compound.findtext('name')
        if '@' in name:
            continue
        if kind != 'namespace':
            entries.append({'location': f"api/{compound.findtext('filename')}", 'title': name.removeprefix('tessera::'), 'text': f'<p>{kind} of the API</p>'})
        seen = set()
        for member in compound.iter('member'):
            title = f"{name}::{member.findtext('name')}".removeprefix('tessera::')
            if member.get('kind') not in {'function', 'enumeration', 'typedef'} or member.get('protection') == 'private' or title in seen:
                continue
            seen.add(title)
            text = html.escape(f"{member.findtext('type') or ''} {member.findtext('name')}{member.findtext('arglist') or ''}".strip())
            entries.append({'location': f"api/{member.findtext('anchorfile')}#{member.findtext('anchor')}", 'title': title, 'text': f'<p><code>{text}</code></p>'})
    return entries
