import { isIP } from 'node:net';
import { nameResolver, nameServersAnswer, type Resolve } from '../../egress/resolver.ts';
import { ifOpens } from '../../keys/key-ring.ts';
import { unsealAuthentication } from '../exporters/authentication.ts';
import type { Exporter, StoredExporter } from '../exporters/exporter.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { FindingCode } from './doctor-words.ts';
import { type Finding, found } from './finding.ts';

/** Who knows names here. */
export interface Names {
    readonly resolve: Resolve;
    /** Whether a name server has said anything; null where others are asked as well. Never rejects. */
    serversAnswer(): Promise<boolean | null>;
}

/** Maximum number of host names that are looked up, all at the same time. */
const MAX_LOOKUPS = 50;

/** Longest time that is waited for the addresses of a name, in milliseconds. */
const NAME_TIMEOUT = 5_000;

/** The same for a name server to say anything at all: it need ask nobody for that. */
const SERVER_TIMEOUT = 1_000;

/** Looks names up as attempts do, and remembers none of them. */
export function namesAsTheSender({ sender: { limits, nameServers } }: Pick<WebhooksContext, 'sender'>): Names {
    const resolver = limits?.resolver;
    return {
        resolve: nameResolver({ timeout: NAME_TIMEOUT, maxPending: MAX_LOOKUPS, resolver, nameServers }),
        serversAnswer: async () => (resolver === 'system' ? null : await nameServersAnswer({ timeout: SERVER_TIMEOUT, nameServers })),
    };
}

const CODES_WITHOUT_NAMES: ReadonlyMap<boolean | null, FindingCode> = new Map([
    [true, 'name_servers_answer'],
    [false, 'name_servers_silent'],
]);

/**
 * The running exporters the names of whose receivers are looked up here when something is sent: not those whose proxy looks them up, which may be
 * the only one to know them. Of a proxy or a URL that cannot be unsealed this is not known: that is a finding about keys.
 */
async function namedHere(
    exporters: readonly Exporter[],
    { exporters: store, keyRing }: Pick<WebhooksContext, 'exporters' | 'keyRing'>,
): Promise<readonly Exporter[]> {
    const running = exporters.filter(({ state, url }) => state === 'running' && URL.canParse(url));
    if (!running.some(({ authentication }) => authentication.includes('proxy'))) {
        return running;
    }

    const stored = await store.list({ patient: true });
    const isNamedHere = (exporter: StoredExporter): boolean =>
        ifOpens(() => unsealAuthentication(exporter, keyRing)?.proxy?.resolvesNames !== true) === true;
    const here = new Set(stored.filter(isNamedHere).map(({ id }) => id));
    return running.filter(({ id }) => here.has(id));
}

/** Around an IPv6 address in a URL. */
const BRACKETS = /^\[|\]$/g;

/**
 * Whether the names of receivers can be looked up here. Where none has a name it is whether name servers answer at all: if they do not, nothing is wrong
 * yet.
 */
export async function namesFinding(
    exporters: readonly Exporter[],
    context: Pick<WebhooksContext, 'exporters' | 'keyRing'>,
    { resolve, serversAnswer }: Names,
): Promise<Finding> {
    const hosts = new Set((await namedHere(exporters, context)).map(({ url }) => new URL(url).hostname));
    const names = [...hosts].filter((host) => isIP(host.replace(BRACKETS, '')) === 0).slice(0, MAX_LOOKUPS);
    if (names.length === 0) {
        return found('names', 'ok', CODES_WITHOUT_NAMES.get(await serversAnswer()) ?? 'names_none');
    }

    const answers = await Promise.allSettled(names.map((name) => resolve(name, AbortSignal.timeout(NAME_TIMEOUT))));
    const unknown = names.filter((_, index) => answers[index]?.status === 'rejected');
    if (unknown.length === 0) {
        return found('names', 'ok', 'names_known', [String(names.length)]);
    }

    const values = [unknown.join(', ')];
    return unknown.length === names.length
        ? found('names', 'wrong', 'names_all_unknown', values)
        : found('names', 'warning', 'names_unknown', values);
}
