import t from 'tap';
import type { HttpResponse } from '../../../../lib/records/index.ts';
import { parsedHttp } from './parsed-http.ts';

function page(body: string | Uint8Array, type: string | null = 'text/html'): HttpResponse {
    return parsedHttp(['HTTP/1.1 200 OK\r\n', type === null ? '' : `Content-Type: ${type}\r\n`, '\r\n', body]);
}

function utf16(text: string, label: 'utf-16le' | 'utf-16be'): Buffer {
    const bytes = Buffer.from(text, 'utf16le');
    return label === 'utf-16be' ? bytes.swap16() : bytes;
}

t.test('finds the charset in byte order mark, head and page, in this order', (t) => {
    const meta = '<meta charset=koi8-r>';
    t.equal(page(`\xef\xbb\xbf${meta}`, 'text/html; charset=shift_jis').charset, 'utf-8');
    t.equal(page(utf16('\ufeffx', 'utf-16le'), 'text/html; charset=utf-8').charset, 'utf-16le');
    t.equal(page(utf16('\ufeffx', 'utf-16be')).charset, 'utf-16be');
    t.equal(page(meta, 'text/html; charset=shift_jis').charset, 'shift_jis');
    t.equal(page(meta).charset, 'koi8-r');
    t.equal(page(meta, null).charset, 'koi8-r');
    t.equal(page(meta, 'text/plain').charset, null);
    t.equal(page('x').charset, null);
    t.end();
});

t.test('reads the forms of Content-Type that are seen', (t) => {
    const types: [string, string | null][] = [
        ['text/html;charset=UTF-8', 'utf-8'],
        ['text/html; Charset="utf8"', 'utf-8'],
        ["text/html; boundary=x; charset='utf-8'; y", 'utf-8'],
        ['text/html ; charset = latin1', 'windows-1252'],
        ['application/json; charset=utf-8', 'utf-8'],
        ['text/html; charset=', null],
        ['text/html; charset=\fkoi8-r', null],
        ['text/html; charset=koi8-r\f', 'koi8-r'],
        ['text/html; notcharset=utf-8', null],
        ['text/html', null],
    ];
    for (const [type, charset] of types) {
        t.equal(page('x', type).charset, charset, type);
    }

    t.end();
});

t.test('reads the forms of meta that are seen', (t) => {
    const metas: [string, string | null][] = [
        ['<META CHARSET="UTF-8">', 'utf-8'],
        ["<meta charset='gbk'/>", 'gbk'],
        ['<meta name=x><meta\ncharset = euc-kr >', 'euc-kr'],
        ['<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-2">', 'iso-8859-2'],
        ['<meta content="text/html; charset=big5" http-equiv=content-type>', 'big5'],
        ['<meta name="description" content="charset=gbk">', null],
        ['<!-- <meta charset="gbk"> --><meta charset="utf-8">', 'utf-8'],
        ['<meta charset=utf-16le>', 'utf-8'],
        ['<metal charset=gbk>', null],
        [`${' '.repeat(1024)}<meta charset=gbk>`, null],
        [`${' '.repeat(1000)}<meta charset=gbk>`, 'gbk'],
    ];
    for (const [meta, charset] of metas) {
        t.equal(page(meta).charset, charset, meta);
    }

    t.end();
});

t.test('tells of labels that nobody knows', (t) => {
    const unknown = page('<meta charset=utf-8>', 'text/html; charset=nonsense');
    t.same([unknown.charset, unknown.problems, unknown.truncated], ['utf-8', ['charset_unknown'], false]);
    t.same(page('<meta charset=none>').problems, ['charset_unknown']);
    t.same(page('x', 'text/html; charset=__proto__').problems, ['charset_unknown']);
    t.end();
});

t.test('decodes titles by charset', (t) => {
    const titled = (text: string | Uint8Array): Buffer =>
        Buffer.concat([Buffer.from('<title>'), Buffer.from(text as Uint8Array), Buffer.from('</title>')]);
    t.equal(page(titled(Buffer.from('Schön')), 'text/html; charset=utf-8').title, 'Schön');
    t.equal(page(titled(Buffer.from([0x80, 0x93, 0xe9, 0x94])), 'text/html; charset=iso-8859-1').title, '€“é”');
    t.equal(page(titled(Buffer.from([0x93, 0xfa, 0x96, 0x7b])), 'text/html; charset=shift_jis').title, '日本');
    t.equal(page(titled(Buffer.from([0xcf, 0xd2])), 'text/html; charset=windows-1251').title, 'ПТ');
    t.equal(page(titled(Buffer.from('Schön €'))).title, 'Schön €', 'UTF-8 when nobody says and it can be');
    t.equal(page(titled(Buffer.from([0x53, 0xe9, 0x80]))).title, 'Sé€', 'windows-1252 when it cannot');
    t.equal(page(titled(Buffer.from([0x53, 0xe9])), 'text/html; charset=utf-8').title, 'S\ufffd');
    for (const label of ['utf-16le', 'utf-16be'] as const) {
        t.equal(page(utf16('\ufeff<title>日本 &amp;</title>', label)).title, '日本 &');
        t.equal(page(utf16('<title>日本</title>', label), `text/html; charset=${label}`).title, '日本');
    }

    t.end();
});

t.test('finds the title of the page', (t) => {
    const pages: [string, string | null][] = [
        ['<title>Welcome</title>', 'Welcome'],
        ['<TITLE lang="en">Welcome</TITLE >', 'Welcome'],
        ['<title\n>Welcome</title>', 'Welcome'],
        ['<title>\n  Welcome\t to\r\n nginx! \n</title>', 'Welcome to nginx!'],
        ['<title></title><title>x</title>', ''],
        ['<title>First</title><title>Second</title>', 'First'],
        ['<title>A < B <b>c</b></title>', 'A < B <b>c</b>'],
        ['<title>Cut o', 'Cut o'],
        ['<title', null],
        ['<titles>x</titles>', null],
        ['<p>no title', null],
        ['', null],
    ];
    for (const [body, title] of pages) {
        t.equal(page(body).title, title, body);
    }

    t.end();
});

t.test('decodes character references in titles', (t) => {
    t.equal(
        page('<title>a &amp;&lt; b &eacute;&#8211;&#X41;&#x80;&notin;&ampx &nbsp; &unknown;</title>').title,
        'a &< b é–A€∉&x &unknown;',
    );
    t.equal(page('<title>&#0;&#xD800;&#1114112;&#99999999999999999999;</title>').title, '\ufffd'.repeat(4));
    t.end();
});

t.test('passes over what only looks like a title', (t) => {
    const title = '<title>Page</title>';
    const pages = [
        '<!-- <title>x</title> -->',
        '<!--><!-- <title>x</title> --->',
        '<script>"<title>x</title>"</script>',
        '<SCRIPT type="x"><!-- <title>x</title></SCRIPT >',
        '<style>/* <title>x</title> */</style>',
        '<textarea><title>x</title></textarea>',
        '<svg viewBox="0 0 1 1"><title>x</title></svg>',
    ];
    for (const before of pages) {
        t.equal(page(before + title).title, 'Page', before);
        t.equal(page(before).title, null, before);
        t.equal(page(before.replace(/<\/(?:script|style|textarea|svg) ?>|--+>$/i, '')).title, null, `${before} cut off`);
    }

    t.equal(page(`<!-->${title}`).title, 'Page');
    t.end();
});

t.test('looks for a title in pages only, and not in all of a long one', (t) => {
    const title = '<title>Page</title>';
    for (const type of ['text/html', 'TEXT/HTML;x', 'application/xhtml+xml; charset=utf-8', null]) {
        t.equal(page(title, type).title, 'Page', type ?? 'no type');
    }

    for (const type of ['text/plain', 'application/json', 'image/svg+xml', 'text/htmlx']) {
        t.equal(page(title, type).title, null, type);
    }

    t.equal(page(' '.repeat(60_000) + title).title, 'Page');
    t.equal(page(' '.repeat(70_000) + title).title, null);
    t.end();
});

t.test('caps the title', (t) => {
    t.equal(page(`<title>${'x'.repeat(1000)}</title>`).title, 'x'.repeat(512));
    t.equal(page(Buffer.from(`<title>${'x'.repeat(511)}😀</title>`)).title, 'x'.repeat(511));
    t.end();
});
