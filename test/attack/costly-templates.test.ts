import t from 'tap';
import { eventOf, fullInvestigation, made } from '../lib/webhooks/formats/events.ts';

/*
 * Templates are written by whoever may change an exporter, and are filled in by the process that serves everybody: one that takes long, or much
 * memory, is given up at its limits, whichever filter it does it with.
 */

const event = eventOf(fullInvestigation);

const filled = (template: string, of = event) => JSON.parse(made('template', of, { t: template }).body.toString()).t as string;
const REFUSED = /^Template t cannot be filled in: more than 2000000 characters and items are made on the way$/;

/** A list that holds itself twice after each step, so often. */
const begun = "{% assign a = '' | split: ',' %}";
const DOUBLED: Readonly<Record<string, string>> = {
    push: '{% assign a = a | push: a | push: a %}',
    unshift: '{% assign a = a | unshift: a | unshift: a %}',
    'concat of one that was pushed': '{% assign b = "" | split: "," | push: a %}{% assign a = b | concat: b %}',
    group_by: "{% assign a = a | push: 1 | concat: a | group_by: 'x' %}",
    group_by_exp: "{% assign a = a | push: 1 | concat: a | group_by_exp: 'x', '1' %}",
    'the names of groups': "{% assign a = a | push: 1 | group_by_exp: 'x', 'a' | concat: a %}",
    'what groups hold': "{% assign a = a | push: 1 | concat: a | group_by: 'x' | map: 'items' %}",
};

for (const [name, step] of Object.entries(DOUBLED)) {
    t.test(`gives up a list that is doubled by ${name}, whatever is made of it`, (t) => {
        const doubled = begun + step.repeat(40);
        for (const use of ['{{ a }}', '{{ a | json }}', '{{ a | join: "," | size }}', '{% assign b = a %}{% if a == b %}x{% endif %}']) {
            t.throws(() => filled(doubled + use), { code: 'MISCONFIGURED', message: REFUSED }, use);
        }
        t.end();
    });
}

t.test('counts a long text as often as it is put into a list', (t) => {
    const long = `{% assign s = body.title %}${begun}{% for i in (1..300) %}{% assign a = a | push: s %}{% endfor %}{{ a | size }}`;
    const of = (length: number) => eventOf({ ...fullInvestigation, title: 'x'.repeat(length) }, 'own');
    t.equal(filled(long, of(100)), '300');
    t.throws(() => filled(long, of(10_000)), { message: REFUSED });
    t.end();
});

t.test('fills lists that grow as templates need them', (t) => {
    t.equal(
        filled(`${begun}{% for u in body.actors.users %}{% assign a = a | push: u %}{% endfor %}{{ a | map: 'name' | join }}`),
        'Ann Bob',
    );
    t.equal(filled("{% assign a = body.actors.assets | concat: body.actors.users | unshift: 'x' %}{{ a | size }}"), '4');
    t.equal(filled("{% assign a = body.actors.users | group_by: 'name' %}{{ a | map: 'name' | join: ';' }}"), 'Ann;Bob');
    t.equal(filled("{{ body.actors.users | where_exp: 'u', 'u.name contains \"nn\"' | map: 'name' }}"), 'Ann');
    t.equal(filled("{{ body.actors.users | group_by_exp: 'u', 'u.name | size' | map: 'name' }}"), '3');
    t.equal(filled("{% if body.actors.users contains 'x' %}y{% else %}n{% endif %}"), 'n');
    t.end();
});

const LOOKING: Readonly<Record<string, string>> = {
    where_exp: '| size',
    reject_exp: '| size',
    group_by_exp: '| size',
    has_exp: '',
    find_exp: '',
    find_index_exp: '',
};
const items = (count: number) => Array.from({ length: count }, (_, index) => ({ hostname: `db${index}` }));
/** As many items as a body may well have. */
const many = eventOf({ ...fullInvestigation, actors: { ...fullInvestigation.actors, assets: items(3000) } }, 'own');

for (const [name, end] of Object.entries(LOOKING)) {
    t.test(`takes a step for each item that ${name} asks about`, (t) => {
        const asked = (times: number): string => `{{ body.actors.assets | ${name}: 'a', 'nothing' ${end} }}`.repeat(times);
        t.doesNotThrow(() => filled(asked(1), many));
        t.throws(() => filled(asked(17), many), { message: /more than 50000 parts are filled in$/ });
        t.end();
    });
}

t.test('takes a step for each look through a long list', (t) => {
    const looks = Array.from({ length: 2600 }, () => "b contains 'y'").join(' or ');
    const often = (length: number, rounds: number): string =>
        `{% assign b = '${'y,'.repeat(length)}' | split: ',' %}{% for i in (1..${rounds}) %}{% if ${looks} %}{% endif %}{% endfor %}`;
    t.equal(filled(often(1000, 2)), '');
    t.equal(filled(often(99, 20)), '');
    t.throws(() => filled(often(1000, 20)), { message: /more than 50000 parts are filled in$/ });
    t.end();
});
