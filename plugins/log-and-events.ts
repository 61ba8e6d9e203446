/** What a registration of a plugin says in the log of its server and by the server's events, and what a log must not hold. */
import type { Request, Server } from '@hapi/hapi';
import { KEY_EVENTS, type KeyEvent } from '../lib/keys/api-keys.ts';
import { processWarning } from '../lib/process-warning.ts';
import { DELIVERY_EVENTS, EXPORTER_EVENTS, type WebhookEvent } from '../lib/webhooks/observing/emitted-events.ts';

/** A registration, by the name that tells it from others of its plugin. */
interface Registration {
    readonly instance?: string | undefined;
}

/** What tags every entry of an instance in the log of its server, before `error`. */
export function logTags(plugin: string, instance?: string | undefined): string[] {
    return ['scanwire', plugin, ...(instance === undefined ? [] : [instance])];
}

/**
 * Writes to the log of a request what failed in an instance of the plugin, and nothing of what ended since the client has left. Routes know theirs; a scheme, whose
 * routes are another's, names it.
 */
export function logFailure(
    request: Request,
    plugin: string,
    error: unknown,
    instance: string | undefined = instanceOf(request, plugin),
): void {
    const hasLeft = error instanceof DOMException && error.name === 'AbortError' && request.raw.res.closed;
    if (!hasLeft) {
        request.log([...logTags(plugin, instance), 'error'], error as Error);
    }
}

/**
 * Writes to the log of a request what is not as it should be in an instance of the plugin, and has not made the request fail: nor does a listener that
 * throws, which may take text for an error.
 */
export function logWarning(request: Request, plugin: string, message: string): void {
    try {
        request.log([...logTags(plugin, instanceOf(request, plugin)), 'warn'], message);
    } catch {
        processWarning(message);
    }
}

function instanceOf({ route: { realm } }: Request, plugin: string): string | undefined {
    return realm.plugin === plugin ? (realm.pluginOptions as Registration).instance : undefined;
}

/** Writes to the log of a server. */
type Log = (level: 'error' | 'warn' | 'info', said: Error | string) => void;

/**
 * What an instance writes to the log of its server. Nothing of ours ends by a listener of the log that throws, which may take text for an error:
 * the process warns of the first time.
 */
export function logging(server: Server, plugin: string, { instance }: Registration): Log {
    let isWarned = false;
    return (level, said) => {
        try {
            server.log([...logTags(plugin, instance), level], said);
        } catch (error) {
            if (!isWarned) {
                isWarned = true;
                const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
                process.emitWarning(`A listener of the log of the server throws at what ${plugin} writes`, {
                    type: 'ScanwireWarning',
                    detail,
                });
            }
        }
    };
}

/** What is told of an answer that broke off because its rows could not be read to their end. */
export interface StreamEvent {
    readonly type: 'stream.cut';
    readonly path: string;
    readonly requestId: string;
}

/** The name of the event of a server that tells what happens in every plugin. */
export const EVENT = 'scanwire';

/** What {@link EVENT} tells, and its channels: a listener for some of them says `channels`. */
export const EVENT_TYPES: readonly HostEvent['type'][] = [
    'event.accepted',
    ...DELIVERY_EVENTS,
    ...EXPORTER_EVENTS,
    ...KEY_EVENTS,
    'stream.cut',
];

/** What an instance has to tell. */
export type HostEvent = WebhookEvent | KeyEvent | StreamEvent;

/** What a listener of {@link EVENT} gets. */
export type ScanwireEvent = HostEvent & { readonly plugin: string; readonly instance?: string };

/** Lets a server tell what happens in an instance of the plugin. What a listener throws goes to the log, and to nobody else. */
export function announcing(
    server: Server,
    plugin: string,
    { instance }: Registration,
    log: Log = logging(server, plugin, { instance }),
): (event: HostEvent) => void {
    // Not `emit`: nobody would catch what an asynchronous listener throws.
    async function announce(event: HostEvent): Promise<void> {
        const told: ScanwireEvent = { ...event, plugin, ...(instance !== undefined && { instance }) };
        const heard = await server.events.gauge({ name: EVENT, channel: event.type }, told);
        for (const { reason } of heard.filter(isRejected)) {
            log('error', reason as Error);
        }
    }

    return (event) => void announce(event).catch((error: Error) => log('error', error));
}

function isRejected(result: PromiseSettledResult<unknown>): result is PromiseRejectedResult {
    return result.status === 'rejected';
}

/**
 * Paths of what a logger of requests must not write: keys, secrets and the URLs of receivers, as pino and hapi-pino name them. Whoever
 * sends a key in another header than `token` has sent it all the same. Not `req.url`, without which
 * a log says little: it holds a key only where `metasploit-data` takes one in the query.
 */
export const redact: readonly string[] = [
    'req.headers.token',
    'req.headers.authorization',
    'req.headers.cookie',
    'req.query.token',
    'payload.secret',
    'payload.headers',
    'payload.url',
    'payload.formatSecret',
    'payload.basic',
    'payload.clientCertificate',
    'payload.oauth',
    'payload.proxy',
    // Of an exporter that is not saved: no path leads one level deeper by itself.
    'payload.draft.secret',
    'payload.draft.headers',
    'payload.draft.formatSecret',
    // A licence; and whoever takes one half of a pair of keys for the other has sent the private one.
    'payload.text',
];
