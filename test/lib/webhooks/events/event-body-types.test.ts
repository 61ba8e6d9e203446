import t from 'tap';
import { eventBody } from '../../../../lib/webhooks/events/event-body.ts';
import type { InvestigationCreated } from '../../../../lib/webhooks/events/event-body-types.ts';
import { investigationCreated } from '../../../../lib/webhooks/events/event-kinds.ts';

type Whole<T> = T extends Date
    ? T
    : T extends readonly (infer Item)[]
      ? [Whole<Item>]
      : T extends object
        ? { [K in keyof T]-?: Whole<NonNullable<T[K]>> }
        : T;

/** Every field that the compiler knows, in the order in which it is sent; the compiler refuses one more, and one less. */
const whole: Whole<InvestigationCreated> = {
    timestamp: '2026-11-21T09:30:00.000Z',
    title: 'Suspicious sign-in',
    description: '',
    link: 'https://example.com/i/1',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: {
        users: [{ name: 'Ada', distinguishedName: 'CN=ada', link: 'https://example.com/u/1', emails: '' }],
        assets: [{ hostname: 'web', fqdn: 'web.example.com', shortname: 'web', link: 'https://example.com/a/1' }],
    },
};

interface Described {
    readonly keys?: Readonly<Record<string, Described>>;
    readonly items?: readonly Described[];
    readonly flags?: { readonly presence?: string };
}

/** Names of all fields below a schema, those that may be missing with a question mark. */
function fieldsOf({ keys = {}, items = [] }: Described, at = ''): readonly string[] {
    const own = Object.entries(keys).flatMap(([name, field]) => {
        const path = `${at}${name}`;
        return [`${path}${field.flags?.presence === 'required' ? '' : '?'}`, ...fieldsOf(field, `${path}.`)];
    });
    return [...own, ...items.flatMap((item) => fieldsOf(item, at))];
}

t.test('the compiler knows the fields of an investigation that its schema has, and which may be missing', async (t) => {
    t.equal(eventBody(investigationCreated, whole), JSON.stringify(whole));
    const { schema } = investigationCreated;
    const fields = fieldsOf((schema as unknown as { describe(): Described }).describe());
    t.strictSame(
        fields.map((path) => path.replace('?', '')),
        [
            ...Object.keys(whole),
            ...Object.keys(whole.actors).flatMap((name) => {
                const [one] = whole.actors[name as 'users' | 'assets'];
                return [`actors.${name}`, ...Object.keys(one).map((field) => `actors.${name}.${field}`)];
            }),
        ],
    );

    const { description: _, ...required } = whole;
    const [{ distinguishedName: __, ...user }] = whole.actors.users;
    const [{ fqdn: ___, ...asset }] = whole.actors.assets;
    const least: InvestigationCreated = { ...required, actors: { users: [user], assets: [asset] } };
    t.equal(eventBody(investigationCreated, least), JSON.stringify(least));
    t.strictSame(
        fields.filter((path) => path.endsWith('?')),
        ['description?', 'actors.users.distinguishedName?', 'actors.assets.fqdn?'],
    );
});
