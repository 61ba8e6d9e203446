import { Liquid } from 'liquidjs';
import t from 'tap';
import { eventOf, fullInvestigation, made, smallInvestigation } from '../lib/webhooks/formats/events.ts';

/*
 * The engine that users know their templates from, as anybody would use it: each text of a document rendered by itself, with no limits. Only the zone is
 * said, since the engine's is that of the machine.
 */
const liquid = new Liquid({ timezoneOffset: 0 });

const TEMPLATES: readonly object[] = [
    { text: 'New: {{ body.title }} ({{ kind }})' },
    { id: '{{ id }}', at: '{{ time }}', missing: '[{{ body.nothing.at.all }}]' },
    ['{{ body.title | upcase }}', 7, null, true, { '{{ id }}': 'keys stay' }],
    { hosts: '{% for asset in body.actors.assets %}{{ asset.hostname }}{% unless forloop.last %}, {% endunless %}{% endfor %}' },
    { hosts: '{{ body.actors.assets | map: "hostname" | join: ";" }}', first: '{{ body.actors.users[0].name | default: "nobody" }}' },
    { level: '{% if body.actors.users.size > 1 %}high{% elsif body.actors.users.size == 1 %}low{% else %}none{% endif %}' },
    { kind: '{% case kind %}{% when "idr_investigation_created" %}investigation{% else %}other{% endcase %}' },
    { day: '{{ body.timestamp | date: "%Y-%m-%d %H:%M:%S" }}', year: '{{ time | date: "%Y" }}' },
    { short: '{{ body.title | truncate: 9 }}', safe: '{{ body.title | escape }}', url: '{{ body.link | url_encode }}' },
    { text: '{% assign names = body.actors.users | map: "name" %}{{ names | sort | reverse | join: "/" }}' },
    { text: '{% capture line %}{{ body.title }}-{{ body.description }}{% endcapture %}{{ line | newline_to_br | strip }}' },
    { json: '{{ body.actors | json }}', count: '{{ body.actors.assets.size | plus: 1 | times: 2 }}' },
    { trimmed: 'a {%- if body.title -%} b {%- endif -%} c {{- " d " -}} e', raw: '{% raw %}{{ body }}{% endraw %}', plain: 'no { } %' },
    {
        table: '{% for user in body.actors.users reversed limit: 1 %}{% cycle "odd", "even" %} {{ user.emails | split: "," | last }}{% endfor %}',
    },
];

const BODIES: Readonly<Record<string, object>> = { full: fullInvestigation, small: smallInvestigation };

/** The document with each of its texts rendered. */
function rendered(value: unknown, scope: object): unknown {
    if (typeof value === 'string') {
        return liquid.parseAndRenderSync(value, scope);
    }
    if (Array.isArray(value)) {
        return value.map((item) => rendered(item, scope));
    }
    return typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).map(([key, below]) => [key, rendered(below, scope)]))
        : value;
}

for (const [name, body] of Object.entries(BODIES)) {
    t.test(`fills templates in as the engine itself does, with the ${name} investigation`, (t) => {
        const event = eventOf(body);
        const scope = { kind: event.kind, id: event.id, time: event.time.toISOString(), body: event.body };
        for (const template of TEMPLATES) {
            const ours = made('template', event, template).body.toString();
            t.equal(ours, JSON.stringify(rendered(template, scope)), JSON.stringify(template));
        }
        t.end();
    });
}
