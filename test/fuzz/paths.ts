import { seeded } from '../support/seeded.ts';

type Random = () => number;

const SEGMENTS = [
    'workspaces',
    'hosts',
    'services',
    'notes',
    'sessions',
    'vulns',
    'base',
    'openapi.json',
    'campaigns',
    '',
    '.',
    '..',
    '%2e%2e',
];
const IDS = [
    '1',
    '2',
    '3',
    '9',
    '0',
    '01',
    '-1',
    '1e3',
    '2147483647',
    '2147483648',
    '99999999999999999999',
    '%31',
    'x',
    '%',
    '%zz',
    '%00',
    '%F0%9F%92%BE',
    '１',
];
const NAMES = [
    ...['limit', 'after', 'fields', 'state', 'address', 'name', 'os_name', 'arch', 'purpose', 'search', 'updated_since', 'last_seen_since'],
    ...['deleted_since', 'page', 'LIMIT', '__proto__', 'constructor', 'limit[]', 'limit%5B%5D', '', 'token', '%', '%E0%A4%A', 'fields.id'],
];
const VALUES = [
    ...[
        '',
        '0',
        '1',
        '2',
        '1000',
        '1001',
        '-1',
        '1e9',
        '0x10',
        'NaN',
        'id',
        'id,name',
        'id,id',
        'address,last_seen',
        '__proto__',
        'alive',
        'down',
        'open',
    ],
    ...[
        '192.0.2.1',
        '192.0.2.0/24',
        '192.0.2.9-192.0.2.1',
        '::/0',
        '::ffff:192.0.2.1',
        'fe80::1%25eth0',
        '0.0.0.0/0',
        '999.0.0.1',
        '/',
        '-',
    ],
    ...[
        '2026-11-21T09:30:00Z',
        '2026-11-21T09:30:00+01:00',
        '0001-01-01T00:00:00Z',
        '9999-12-31T23:59:59Z',
        '275760-09-13T00:00:00Z',
        '1795255200000-5',
    ],
    ...[
        '-62135596800000-1',
        '-8640000000000000-1',
        '9007199254740993-1',
        '%',
        '%25',
        '%00',
        '%F0%9F%92%BE',
        '%ED%A0%80',
        "'",
        '--',
        '\\',
        '.*',
        '_',
        'ß',
        'x'.repeat(256),
    ],
];

/** A value that fits. */
const PAIRS = [
    'limit=1',
    'after=1',
    'state=alive',
    'fields=id',
    'updated_since=2026-11-21T09:30:00Z',
    'deleted_since=2001-01-01T00:00:00Z',
];

function one<T>(random: Random, values: readonly T[]): T {
    return values[Math.floor(random() * values.length)] as T;
}

/** Mostly a path that there could be, sometimes one that nobody would think of. */
function pathOf(random: Random): string {
    const length = 1 + Math.floor(random() * 9);
    const usual = ['workspaces', '', 'hosts', '', 'services', '', 'vulns', ''];
    const segments = Array.from({ length }, (_, at) => {
        if (random() < 0.1) {
            return one(random, [...SEGMENTS, ...IDS]);
        }
        const expected = at === 2 && random() < 0.3 ? one(random, SEGMENTS) : usual[at];
        return expected === undefined || expected === '' ? (random() < 0.7 ? one(random, ['1', '2']) : one(random, IDS)) : expected;
    });
    return `/${segments.join('/')}${random() < 0.1 ? '/' : ''}`;
}

function queryOf(random: Random): string {
    const pair = (): string => (random() < 0.2 ? one(random, PAIRS) : `${one(random, NAMES)}=${one(random, VALUES)}`);
    const pairs = Array.from({ length: Math.floor(random() * 4) }, pair);
    return pairs.length === 0 ? '' : `?${pairs.join(random() < 0.05 ? '&&' : '&')}`;
}

/** What a query that nothing is known of is made of. */
const UNKNOWN = NAMES.slice(NAMES.indexOf('page')).filter((name) => name !== '');

/** The request of a seed: below the API, its path and query, and a query that must change nothing. */
export function randomRequest(seed: number): { readonly path: string; readonly query: string; readonly unknown: string } {
    const random = seeded(seed);
    // Behind a `%` that is no escape what follows may become one.
    const values = VALUES.filter((value) => !value.endsWith('%'));
    return { path: pathOf(random), query: queryOf(random), unknown: `?${one(random, UNKNOWN)}=${one(random, values)}` };
}
