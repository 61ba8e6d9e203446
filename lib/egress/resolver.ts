import dns from 'node:dns';
import { open } from 'node:fs/promises';
import { devNull } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import Joi from 'joi';
import { machineClock } from '../clock.ts';
import { errorCode } from '../errors.ts';
import { afterWait, within } from '../within.ts';
import { type ConnectionCode, ConnectionFailure, connectionCode, lateBy } from './connection-code.ts';
import { hostsReader } from './hosts-file.ts';
import { knownWaysOut } from './routes.ts';

/** The part of `dns.lookup` that is used. */
export type Lookup = (
    hostname: string,
    options: { readonly all: true; readonly order: 'verbatim' },
    callback: (error: NodeJS.ErrnoException | null, addresses: readonly { readonly address: string }[]) => void,
) => void;

/**
 * Who is asked for the addresses of a name.
 *
 * - `dns`: the hosts file, then the name servers of the system. Their answers hold as long as they say.
 * - `system`: `getaddrinfo`, for a machine that finds names in other ways too (mDNS, NIS, a search list). It occupies one of the few
 *   threads of the process for as long as a name server is silent, and its answers hold for half a minute.
 */
const RESOLVERS = ['dns', 'system'] as const;

/** One of {@link RESOLVERS}. */
export type Resolver = (typeof RESOLVERS)[number];

/** The rule of the option `resolver`. */
export const resolverSchema: Joi.StringSchema = Joi.string()
    .valid(...RESOLVERS)
    .default('dns');

/** The rule of {@link ResolverOptions.nameServers}. */
export const nameServersSchema: Joi.ArraySchema<string[]> = Joi.array()
    .items(
        Joi.string().custom((server: string, { message }) => {
            try {
                new dns.Resolver().setServers([server]);
                return server;
            } catch {
                return message({ custom: '{{#label}} must be an address, or an address and a port' });
            }
        }),
    )
    .min(1);

/** How names are resolved. */
export interface ResolverOptions {
    /** `dns` by default. */
    readonly resolver?: Resolver | undefined;
    /** Stands in for both, has the shape of `dns.lookup`; what it answers is not kept. */
    readonly lookup?: Lookup | undefined;
    /** Milliseconds in which a name must be resolved. */
    readonly timeout: number;
    /** Names that are resolved at the same time; those that were slow before, half as many. */
    readonly maxPending: number;
    /** Name servers, `address` or `address:port`; those of the system by default. */
    readonly nameServers?: readonly string[] | undefined;
    /** Names whose addresses are kept, 4,096 by default. */
    readonly maxKept?: number;
    /** Path of a hosts file; that of the system by default. */
    readonly hostsFile?: string | undefined;
    /** Milliseconds that only go forward, as `performance.now`. */
    readonly monotonic?: () => number;
}

/** Addresses of a name, in the resolver's order, at least one. @throws ConnectionFailure, or the signal's reason. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/** What was found, and for how many milliseconds it may be used. */
interface Answer {
    readonly addresses: readonly string[];
    readonly maxAge: number;
}

/**
 * Looks a name up. Rejects with the signal's reason when it can leave off; who cannot goes on.
 *
 * @param begin Called once nothing of this process is waited for any more, but whoever knows the name.
 */
type LookUp = (hostname: string, signal: AbortSignal, begin: () => void) => Promise<Answer>;

/** A name that is being looked up. */
interface Pending {
    readonly answer: Promise<Answer>;
    /** Null until it has begun. */
    readonly begunAt: () => number | null;
}

/** An answer of `getaddrinfo` says nothing of its age. */
const SYSTEM_MAX_AGE = 30_000;

/** However long a name server says. */
const MAX_AGE = 60 * 60_000;

/** A name is slow from this share of the time on. */
const SLOW = 0.5;

/** So many look-ups the system works on at once: libuv gives them half of its threads. */
const SYSTEM_PLACES = Math.ceil((Number(process.env.UV_THREADPOOL_SIZE) || 4) / 2);

/**
 * Resolves names, each within a time limit. Whoever asks for a name that is being looked up shares the answer, and there is an end to
 * how many names are looked up at once: beyond it a name fails as `interrupted`. So does one for which there was too little time left when a
 * thread of this process came to it: that says nothing of whoever knows the name.
 */
export function nameResolver(options: ResolverOptions): Resolve {
    const { resolver = 'dns', lookup, timeout, maxPending, maxKept = 4096, monotonic = machineClock.now } = options;
    const lookUp = lookup
        ? byLookup(lookup, 0)
        : resolver === 'system'
          ? byLookup(dns.lookup, SYSTEM_MAX_AGE, threadIsFree)
          : byDns(timeout, options.nameServers, options.hostsFile);
    const placesForSlow = resolver === 'system' && !lookup ? Math.max(1, SYSTEM_PLACES - 1) : Math.ceil(maxPending / 2);
    const pending = new Map<string, Pending>();
    const kept = new Map<string, Answer & { readonly until: number }>();
    const slow = slowNames(maxKept);
    const waysOut = knownWaysOut();

    function start(hostname: string): Pending {
        if (pending.size >= maxPending || (slow.has(hostname) && slow.among(pending.keys()) >= placesForSlow)) {
            throw new ConnectionFailure('interrupted', 'Too many host names are being resolved');
        }

        const controller = new AbortController();
        let begunAt: number | null = null;
        const begin = (): void => {
            begunAt = monotonic();
        };
        const callOff = afterWait(timeout, (by) => controller.abort(lateBy(by, late(hostname, begunAt))));
        const answer = lookUp(hostname, controller.signal, begin)
            .then((found) => keep(hostname, found))
            .finally(() => {
                callOff();
                slow.note(hostname, isSlow(begunAt));
                pending.delete(hostname);
            });
        const started: Pending = { answer, begunAt: () => begunAt };
        pending.set(hostname, started);
        return started;
    }

    function keep(hostname: string, answer: Answer): Answer {
        if (answer.addresses.length === 0) {
            throw new ConnectionFailure('dns_not_found', `${hostname} has no address`);
        }

        const [oldest] = kept.keys();
        if (kept.size >= maxKept && oldest !== undefined) {
            kept.delete(oldest);
        }
        if (answer.maxAge > 0) {
            kept.set(hostname, { ...answer, until: monotonic() + Math.min(answer.maxAge, MAX_AGE) });
        }
        return answer;
    }

    const isSlow = (begunAt: number | null): boolean => begunAt !== null && monotonic() - begunAt >= timeout * SLOW;

    const late = (hostname: string, begunAt: number | null): ConnectionFailure =>
        isSlow(begunAt)
            ? new ConnectionFailure('dns_timeout', `Resolving ${hostname} took longer than ${timeout} ms`)
            : new ConnectionFailure('interrupted', `Resolving ${hostname} waited for this process: its threads were busy`);

    return async (hostname, signal) => {
        const known = kept.get(hostname);
        if (known !== undefined && monotonic() < known.until) {
            return known.addresses;
        }

        kept.delete(hostname);
        const started = pending.get(hostname) ?? start(hostname);
        const found = within(started.answer, { timeout, late: (by) => lateBy(by, late(hostname, started.begunAt())), signal });
        try {
            const { addresses } = await found;
            waysOut.resolved();
            return addresses;
        } catch (error) {
            throw await waysOut.judged(error);
        }
    };
}

/**
 * Remembers, of so many names, which were slow when they were looked up last: each holds its place for all of that time, and would leave none
 * to the others. What came of it says nothing: a silent name server ends as no answer, as a failure of whoever asks it for us, or as neither.
 */
function slowNames(max: number) {
    const names = new Set<string>();
    return {
        has: (hostname: string): boolean => names.has(hostname),

        among: (hostnames: Iterable<string>): number => [...hostnames].filter((hostname) => names.has(hostname)).length,

        note(hostname: string, isSlow: boolean): void {
            names.delete(hostname);
            if (isSlow) {
                const [oldest = ''] = names.size < max ? [] : names;
                names.delete(oldest);
                names.add(hostname);
            }
        },
    };
}

/**
 * Such a lookup cannot be called off: one that hangs goes on in the background, and is pending all the while.
 *
 * @param isNext Calls back when the look-up that is asked for right after it has begun; at once by default.
 */
function byLookup(lookup: Lookup, maxAge: number, isNext = (begin: () => void): void => begin()): LookUp {
    return async (hostname, _signal, begin) => {
        isNext(begin);
        const found = await new Promise<readonly { readonly address: string }[]>((resolve, reject) => {
            lookup(hostname, { all: true, order: 'verbatim' }, (error, addresses) => {
                if (error === null || error === undefined) {
                    resolve(addresses);
                } else {
                    reject(error);
                }
            });
        }).catch((error: unknown) => {
            throw failureOf(hostname, error);
        });
        return { addresses: Array.isArray(found) ? [...new Set(found.map(({ address }) => address))] : [], maxAge };
    };
}

/**
 * Queues for a thread as look-ups do, who come to theirs in turn. This one ends as soon as it has its thread: it is an address already, in a form
 * that only the system knows for one.
 */
function threadIsFree(begin: () => void): void {
    dns.lookup('127.1', begin);
}

/** Errors of the way to the name servers, which elsewhere mean something else or nothing. */
const DNS_CODES: ReadonlyMap<string, ConnectionCode> = new Map([
    ['ECONNREFUSED', 'dns_failed'],
    ['ETIMEOUT', 'dns_timeout'],
    ['ECANCELLED', 'dns_timeout'],
]);

function failureOf(hostname: string, error: unknown): ConnectionFailure {
    const code = DNS_CODES.get(errorCode(error)) ?? connectionCode(error, 'dns_failed');
    return new ConnectionFailure(code, `${hostname} ${code === 'dns_not_found' ? 'does not exist' : 'could not be resolved'}`, error);
}

/** The first try waits for this share of the time; a second one, of the next server if there is one, for the rest. */
const FIRST_TRY = 0.3;

/** Milliseconds that one family's answer waits for the other's, which a broken name server may never give. */
const OTHER_FAMILY = 250;

/**
 * A channel to the name servers for each name: when its time is over, that one alone stops asking. One for many names would hold no fewer
 * sockets, since c-ares gives each question its own once a server was silent, and would wait shorter for all where one was answered soon.
 */
function byDns(timeout: number, servers?: readonly string[], hostsFile?: string): LookUp {
    const hosts = hostsReader(hostsFile);

    return async (hostname, signal, begin) => {
        // The file is read by threads that others may keep busy.
        const local = await hosts(hostname);
        signal.throwIfAborted();
        begin();
        if (local.length > 0) {
            return { addresses: local, maxAge: 0 };
        }

        const channel = channelTo(servers, timeout);
        const tooLate = new Promise<never>((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
        const asked = [channel.resolve4(hostname, { ttl: true }), channel.resolve6(hostname, { ttl: true })];
        return await Promise.race([ofBothFamilies(hostname, asked), tooLate]).finally(() => channel.cancel());
    };
}

function channelTo(servers: readonly string[] | undefined, timeout: number): dns.promises.Resolver {
    const channel = new dns.promises.Resolver({ timeout: Math.ceil(timeout * FIRST_TRY), tries: 2 });
    if (servers !== undefined) {
        channel.setServers(servers);
    }
    return channel;
}

/** What a name server may say to a question, where it has no records for it: that it refuses it is an answer too. */
const SAID: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND', 'ESERVFAIL', 'EREFUSED', 'ENOTIMP', 'EFORMERR']);

/**
 * Whether a name server says anything within `timeout` milliseconds. It is asked for the name servers of the root, which all that look names up know without
 * asking anybody. Never rejects.
 */
export async function nameServersAnswer({ timeout, nameServers }: Pick<ResolverOptions, 'timeout' | 'nameServers'>): Promise<boolean> {
    const channel = channelTo(nameServers, timeout);
    try {
        await within(channel.resolveNs('.'), { timeout });
        return true;
    } catch (error) {
        return SAID.has(errorCode(error));
    } finally {
        channel.cancel();
    }
}

async function ofBothFamilies(hostname: string, families: readonly Promise<dns.RecordWithTtl[]>[]): Promise<Answer> {
    const records: dns.RecordWithTtl[][] = families.map(() => []);
    const failures: unknown[] = [];
    const all = Promise.all(
        families.map(async (family, index) => {
            try {
                records[index] = await family;
            } catch (error) {
                failures.push(error);
            }
        }),
    );
    const enough = Promise.any(families).then(
        () => sleep(OTHER_FAMILY, undefined, { ref: false }),
        () => all,
    );
    await Promise.race([all, enough]);

    const found = records.flat();
    if (found.length === 0) {
        const failure = failures.find((error) => connectionCode(error, 'dns_failed') !== 'dns_not_found') ?? failures[0];
        throw failureOf(hostname, (errorCode(failure) === 'ECONNREFUSED' && (await lackOfHandles())) || failure);
    }

    return { addresses: found.map(({ address }) => address), maxAge: 1000 * Math.min(...found.map(({ ttl }) => ttl)) };
}

/**
 * The error of a process that has no handle left, null when it has one. Without one, asking a name server fails as if that had refused;
 * the fault is ours then, and no receiver's.
 */
async function lackOfHandles(): Promise<unknown> {
    try {
        await (await open(devNull)).close();
        return null;
    } catch (error) {
        return error;
    }
}
