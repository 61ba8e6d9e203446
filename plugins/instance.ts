/** One registration of a plugin, of which a server may have several: its name, what it exposes, what it says in the log and by events. */
import type { Request, Server } from '@hapi/hapi';
import Joi from 'joi';
import { ScanwireError } from '../lib/errors.ts';
import { KEY_EVENTS, type KeyEvent } from '../lib/keys/api-keys.ts';
import { DELIVERY_EVENTS, EXPORTER_EVENTS, type WebhookEvent } from '../lib/webhooks/observing/host-events.ts';

/** What the options of every plugin have in common. */
export interface InstanceOptions {
    /** Name of this registration, needed from the second one on: 1 to 64 letters, digits, `-` and `_`. */
    readonly instance?: string | undefined;
}

/** Rule of the option `instance`. */
export const instanceSchema: Joi.StringSchema = Joi.string()
    .pattern(/^[A-Za-z0-9_-]{1,64}$/)
    .message('{{#label}} must be 1 to 64 letters, digits, "-" and "_"');

/** What `server.plugins[name]` has besides what the instance without a name offers. */
export interface Instances<Api> {
    /** What the instance of that name offers. @throws ScanwireError `NOT_FOUND`, field `instance`. */
    of(instance: string): Api;
}

/** hapi says no more of a registration than that there is one. By the servers' `plugins`, which all their copies share. */
const registrations = new WeakMap<object, Map<string, Map<string | undefined, object>>>();

function instancesOf({ plugins }: Server, plugin: string): Map<string | undefined, object> {
    const byPlugin = registrations.get(plugins) ?? new Map<string, Map<string | undefined, object>>();
    registrations.set(plugins, byPlugin);
    const instances = byPlugin.get(plugin) ?? new Map<string | undefined, object>();
    byPlugin.set(plugin, instances);
    return instances;
}

/**
 * Takes the name for one registration of the plugin, and lets the server know the event that tells what happens there.
 *
 * @throws ScanwireError `MISCONFIGURED`, field `instance`, when another one has it.
 */
export function claimInstance(server: Server, plugin: string, { instance }: InstanceOptions): void {
    const instances = instancesOf(server, plugin);
    if (instances.has(instance)) {
        const message = `${plugin} options: instance must be a name that no other registration of the plugin has`;
        throw new ScanwireError('MISCONFIGURED', message, { field: 'instance' });
    }

    instances.set(instance, {});
    server.event({ name: EVENT, channels: [...EVENT_TYPES], shared: true });
}

/** Exposes what an instance offers: at `server.plugins[plugin]` for the one without a name, by `of(instance)` there for the others. */
export function exposeInstance(server: Server, plugin: string, { instance }: InstanceOptions, api: object): void {
    const instances = instancesOf(server, plugin);
    instances.set(instance, api);
    if (instance === undefined) {
        server.expose(api);
    }

    server.expose('of', (name: string) => {
        const named = name === undefined ? undefined : instances.get(name);
        if (named === undefined) {
            throw new ScanwireError('NOT_FOUND', `${plugin} has no instance of that name`, { field: 'instance' });
        }

        return named;
    });
}

/** What tags every entry of an instance in the log of its server, before `error`. */
export function logTags(plugin: string, instance?: string | undefined): string[] {
    return ['scanwire', plugin, ...(instance === undefined ? [] : [instance])];
}

/** Writes to the log of a request what failed in an instance of the plugin. Routes know theirs; a scheme, whose routes are another's, names it. */
export function logFailure(
    request: Request,
    plugin: string,
    error: unknown,
    instance: string | undefined = instanceOf(request, plugin),
): void {
    request.log([...logTags(plugin, instance), 'error'], error as Error);
}

function instanceOf({ route: { realm } }: Request, plugin: string): string | undefined {
    return realm.plugin === plugin ? (realm.pluginOptions as InstanceOptions).instance : undefined;
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

type HostEvent = WebhookEvent | KeyEvent | StreamEvent;

/** What a listener of {@link EVENT} gets. */
export type ScanwireEvent = HostEvent & { readonly plugin: string; readonly instance?: string };

/** Lets a server tell what happens in an instance of the plugin. What a listener throws goes to the log, and to nobody else. */
export function announcing(server: Server, plugin: string, { instance }: InstanceOptions): (event: HostEvent) => void {
    return (event) => {
        try {
            const told: ScanwireEvent = { ...event, plugin, ...(instance !== undefined && { instance }) };
            server.events.emit({ name: EVENT, channel: event.type }, told);
        } catch (error) {
            server.log([...logTags(plugin, instance), 'error'], error as Error);
        }
    };
}

/**
 * Paths of what a logger of requests must not write: keys, secrets and the URLs of receivers, as pino and hapi-pino name them. Whoever
 * sends a key in another header than `token` has sent it all the same.
 */
export const redact: readonly string[] = [
    'req.headers.token',
    'req.headers.authorization',
    'req.headers.cookie',
    'payload.secret',
    'payload.headers',
    'payload.url',
    'payload.formatSecret',
    'payload.basic',
    'payload.clientCertificate',
    'payload.oauth',
    'payload.proxy',
];
