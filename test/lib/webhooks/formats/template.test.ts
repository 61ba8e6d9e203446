import { createRequire } from 'node:module';
import fc from 'fast-check';
import t from 'tap';
import { checkFormat, formatTable } from '../../../../lib/webhooks/formats/format.ts';
import { eventOf, fullInvestigation, ID, made } from './events.ts';

const event = eventOf(fullInvestigation);
const formats = formatTable();

const filled = (template: unknown, of = event) => JSON.parse(made('template', of, template).body.toString());
const check = (template: unknown) => checkFormat(formats, { format: 'template', template }, { vendor: 'Acme' });

t.test('loads Liquid when there is a template, not before', (t) => {
    const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('/liquidjs/'));
    t.notOk(loaded());
    made('slack', event);
    t.notOk(loaded());
    filled({ a: '{{ kind }}' });
    t.ok(loaded());
    t.end();
});

t.test('fills texts of a JSON document, and leaves all else as it is', (t) => {
    const template = {
        summary: 'New: {{ body.title }}',
        '{{ key }}': 'keys stay',
        nested: [{ hosts: '{% for asset in body.actors.assets %}{{ asset.hostname }};{% endfor %}' }, 7, true, null],
        plain: 'no Liquid: { } %',
        meta: '{{ kind }} {{ id }} {{ time }}',
        missing: '[{{ body.nothing.at.all }}]',
        json: '{{ body.actors.assets | json }}',
    };
    t.strictSame(filled(template), {
        summary: `New: ${fullInvestigation.title}`,
        '{{ key }}': 'keys stay',
        nested: [{ hosts: 'db1;' }, 7, true, null],
        plain: 'no Liquid: { } %',
        meta: `idr_investigation_created ${ID} 2026-11-21T09:30:01.234Z`,
        missing: '[]',
        json: JSON.stringify(fullInvestigation.actors.assets),
    });
    t.strictSame(filled(['{{ kind }}']), ['idr_investigation_created'], 'a list is a document too');
    t.end();
});

t.test('is JSON by construction, whatever an event says', (t) => {
    fc.assert(
        fc.property(fc.string({ unit: 'binary' }), (title) => {
            const out = filled({ a: 'x{{ body.title }}', b: ['{{ body["title"] | upcase }}'] }, eventOf({ title }, 'own'));
            return Object.keys(out).join() === 'a,b' && typeof out.a === 'string' && out.b.length === 1;
        }),
    );
    t.strictSame(Object.entries(filled(JSON.parse('{"__proto__": "{{ kind }}"}'))), [['__proto__', 'idr_investigation_created']]);
    const injection = '", "admin": true, "x": "{{ id }}{% raw %}';
    t.strictSame(
        filled({ a: '{{ body.title }}' }, eventOf({ title: injection }, 'own')),
        { a: injection },
        'what an event says is no Liquid',
    );
    t.end();
});

t.test('gives the same bytes whenever it is asked: there is no clock and no chance in it', (t) => {
    t.equal(filled({ a: '{{ "now" | date: "%s" }} {{ "today" | date_to_xmlschema }}' }).a, '1795253401 2026-11-21T09:30:01+00:00');
    t.equal(filled({ a: '{% assign time = "now" %}{{ "now" | date: "%s" }}' }).a, '1795253401');
    t.equal(filled({ a: '{{ body.timestamp | date: "%Y-%m-%d %H:%M" }}' }).a, '2026-11-21 09:30', 'in UTC');
    t.throws(() => check({ a: '{{ body.actors.users | sample }}' }), {
        code: 'INVALID_INPUT',
        field: 'template.a',
        message: /undefined filter/,
    });
    t.end();
});

t.test('reads no file and runs no code', (t) => {
    for (const text of ['{% include "/etc/passwd" %}', '{% render "package.json" %}', '{% layout "x" %}', '{% block x %}{% endblock %}']) {
        t.throws(() => check({ a: text }), { code: 'INVALID_INPUT', field: 'template.a', message: /tag "\w+" not found/ }, text);
    }
    for (const path of [
        'constructor',
        '__proto__',
        'toString',
        'constructor.constructor',
        'body.constructor.name',
        'body.title.__proto__',
    ]) {
        t.equal(filled({ a: `{{ ${path} }}` }).a, '', path);
    }
    t.end();
});

t.test('refuses at save what it could not fill in, with the place', (t) => {
    const deep = (levels: number): unknown => (levels === 0 ? '{{ id }}' : { a: deep(levels - 1) });
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    const cases: readonly [unknown, string, RegExp][] = [
        ['{{ id }}', 'template', /^Template must be a JSON object or list$/],
        [7, 'template', /object or list/],
        [{ a: [{ b: '{% if %}' }] }, 'template.a[0].b', /^Template a\[0\]\.b is not Liquid: /],
        [{ a: '{{ id' }, 'template.a', /is not Liquid/],
        [{ a: '{{ id | frobnicate }}' }, 'template.a', /undefined filter/],
        [deep(21), 'template', /at most 20 levels/],
        [cyclic, 'template', /at most 20 levels/],
        [Array.from({ length: 501 }, () => '{{ id }}'), 'template', /at most 500 texts/],
        [{ a: 'x'.repeat(65_536) }, 'template', /at most 65536 characters/],
        [{ a: `{{ id }}${'x'.repeat(65_536)}` }, 'template', /65536 characters/],
        [{ a: Number.NaN }, 'template.a', /must be JSON/],
        [{ a: undefined }, 'template.a', /must be JSON/],
        [{ a: 1n }, 'template.a', /must be JSON/],
        [{ a: () => 1 }, 'template.a', /must be JSON/],
    ];
    for (const [template, field, message] of cases) {
        t.throws(() => check(template), { code: 'INVALID_INPUT', field, message });
    }
    t.end();
});

t.test('a template that is too large is refused before it is taken apart', (t) => {
    const large: Readonly<Record<string, [unknown, RegExp]>> = {
        'few long texts': [Array.from({ length: 60 }, () => '{{a}}'.repeat(13_000)), /^Template must have at most 65536 characters$/],
        'many texts': [Array.from({ length: 500 }, () => '{{a}}'.repeat(1_600)), /^Template must have at most 65536 characters$/],
        'thousands of leaves': [Array.from({ length: 5_000 }, () => '{{a}}'), /^Template must have at most 500 texts with Liquid$/],
        'a million leaves': [Array.from({ length: 1_000_000 }, () => 1), /^Template must have at most 65536 characters$/],
        'long keys': [{ ['k'.repeat(65_536)]: 1 }, /^Template must have at most 65536 characters$/],
    };
    for (const [name, [template, message]] of Object.entries(large)) {
        const begin = process.cpuUsage();
        t.throws(() => check(template), { code: 'INVALID_INPUT', field: 'template', message }, name);
        const { user, system } = process.cpuUsage(begin);
        t.ok(user + system < 500_000, `${name}: ${Math.round((user + system) / 1000)} ms of CPU`);
    }
    t.end();
});

t.test('many texts of one template look at the event once', (t) => {
    const numbers = Array.from({ length: 200_000 }, (_, index) => index);
    const large = eventOf({ title: 'one', numbers }, 'own');
    const begin = process.cpuUsage();
    const texts = filled(
        Array.from({ length: 500 }, () => '{% assign a = body.title %}{{ a }}'),
        large,
    );
    t.strictSame([...new Set(texts)], ['one']);
    const { user, system } = process.cpuUsage(begin);
    t.ok(user + system < 1_000_000, `${Math.round((user + system) / 1000)} ms of CPU`);
    t.end();
});

t.test('hostile templates end soon, and hurt nobody else', (t) => {
    const hostile: Readonly<Record<string, string>> = {
        'a long loop': '{% for i in (1..1000000000) %}x{% endfor %}',
        'loops in loops': `${'{% for i in (1..1000) %}'.repeat(6)}x${'{% endfor %}'.repeat(6)}`,
        'loops with nothing in them': `${'{% for i in (1..100000) %}'.repeat(3)}${'{% endfor %}'.repeat(3)}`,
        'a text that doubles itself': `{% assign a = "xxxxxxxxxx" %}${'{% assign a = a | append: a %}'.repeat(40)}{{ a }}`,
        'a capture that doubles itself': `{% assign a = "xxxxxxxxxx" %}${'{% capture a %}{{ a }}{{ a }}{% endcapture %}'.repeat(40)}{{ a }}`,
        'a captured text compared': `{% assign a = "x" %}${'{% capture a %}{{ a }}{{ a }}{% endcapture %}'.repeat(28)}{% if a contains "y" %}{% endif %}`,
        'a long condition in a loop': `{% for i in (1..16000) %}{% if ${'i == -1 or '.repeat(5000)}false %}{% endif %}{% endfor %}`,
        'a lot of output': '{% for i in (1..1000000) %}{{ body.description }}{% endfor %}',
        'a padded date': '{{ body.timestamp | date: "%999999999Y" }}',
        'a text replaced by longer ones': `{% assign a = "aaaaaaaaaaaaaaaa" %}${'{% assign a = a | replace: "a", "aaaaaaaaaaaaaaaa" %}'.repeat(12)}{{ a }}`,
        'a range joined': '{{ (1..100000000) | join: "," }}',
        'a table': '{% tablerow i in (1..100000000) %}x{% endtablerow %}',
    };
    for (const [name, text] of Object.entries(hostile)) {
        const before = process.memoryUsage().rss;
        const begin = process.cpuUsage();
        t.throws(
            () => made('template', event, { a: text }),
            { code: 'MISCONFIGURED', field: 'template', message: /^Template a cannot be filled in: / },
            name,
        );
        const { user, system } = process.cpuUsage(begin);
        t.ok(user + system < 1_000_000, `${name}: ${Math.round((user + system) / 1000)} ms of CPU`);
        t.ok(process.memoryUsage().rss - before < 200e6, `${name}: memory`);
    }

    const nested = `${'{% if kind %}'.repeat(4000)}x${'{% endif %}'.repeat(4000)}`;
    t.throws(() => made('template', event, { a: nested }), { code: /INVALID_INPUT|MISCONFIGURED/ }, 'tags in tags in tags');
    t.throws(
        () =>
            made('template', event, {
                a: '{{ body.title | date: body.actors }}{% for a in kind.x.y %}{% endfor %}{{ 1 | divided_by: 0 | slice }}{{ "%" | url_decode }}',
            }),
        {
            code: 'MISCONFIGURED',
            message: 'Template a cannot be filled in: Liquid refuses it for this event',
        },
    );
    const many = Array.from({ length: 500 }, () => '{% for i in (1..100) %}x{% endfor %}');
    t.throws(() => made('template', event, many), { code: 'MISCONFIGURED', field: 'template' }, 'the limits are of the whole document');
    const long = eventOf({ title: 'x'.repeat(400_000) }, 'own');
    t.throws(() => filled(['{{ body.title }}', '{{ body.title }}', '{{ body.title }}'], long), {
        message: /more than 1048576 characters come out/,
    });
    t.equal(filled({ a: '{{ kind }}' }).a, 'idr_investigation_created', 'another template goes on');
    t.end();
});

t.test('hostile texts of an event cost a template no more than others', (t) => {
    const filters = [
        'strip_html',
        'escape_once',
        'slugify',
        'newline_to_br',
        'strip',
        'truncatewords',
        'number_of_words',
        'strip_newlines',
        'xml_escape',
    ];
    for (const unit of ['<', '<script', '<!--', ' ', '&', '-', 'a ', '\n']) {
        const hostile = eventOf({ title: unit.repeat(100_000) }, 'own');
        for (const filter of filters) {
            const begin = process.cpuUsage();
            try {
                made('template', hostile, { a: `{{ body.title | ${filter} | size }}` });
            } catch (error) {
                t.match(error, { code: 'MISCONFIGURED', field: 'template' });
            }
            const { user, system } = process.cpuUsage(begin);
            t.ok(user + system < 500_000, `${filter} of ${JSON.stringify(unit)}: ${Math.round((user + system) / 1000)} ms of CPU`);
        }
    }
    t.end();
});
