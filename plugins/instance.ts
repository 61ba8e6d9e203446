/** One registration of a plugin, of which a server may have several: its name, and what it exposes. */
import type { Server } from '@hapi/hapi';
import Joi from 'joi';
import { ScanwireError } from '../lib/errors.ts';
import { EVENT, EVENT_TYPES } from './log-and-events.ts';

/** What the options of every plugin have in common. */
export interface InstanceOptions {
    /** Name of this registration, needed from the second one on: 1 to 64 letters, digits, `-` and `_`. */
    readonly instance?: string | undefined;
}

/** hapi looks schemes and strategies up by name in plain objects, in which some names are found that nobody has given. */
function notInherited<Name>(name: Name, { message }: Joi.CustomHelpers): Name | Joi.ErrorReport {
    const rule = '{{#label}} must be a name that not every object has, as constructor and toString are';
    return typeof name === 'string' && name in Object.prototype ? message({ custom: rule }) : name;
}

/** Rule of a name that a plugin gives to a scheme or a strategy. */
export const strategySchema: Joi.StringSchema = Joi.string().custom(notInherited);

/** Rule of the option `auth`. */
export const authSchema: Joi.AlternativesSchema = Joi.alternatives(Joi.string(), Joi.boolean().valid(false)).custom(notInherited);

/** Rule of the option `instance`. */
export const instanceSchema: Joi.StringSchema = Joi.string()
    .pattern(/^[A-Za-z0-9_-]{1,64}$/)
    .message('{{#label}} must be 1 to 64 letters, digits, "-" and "_"')
    .custom(notInherited);

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
