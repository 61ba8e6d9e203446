import type { Request } from '@hapi/hapi';
import Joi from 'joi';
import type { AuditTrail } from '../../lib/audit/audit-trail.ts';
import { objectWith, ROUTE_PATH } from '../../lib/schema-validation.ts';
import { authSchema, type InstanceOptions, instanceSchema } from '../instance.ts';
import { logFailure } from '../log-and-events.ts';
import { type Caller, named, OPERATOR } from './audit.ts';
import { handlersOf } from './handlers.ts';
import type { OperationName } from './operations.ts';
import { isLedFromElsewhere } from './request-site.ts';
import type { Texts } from './screens/languages.ts';
import type { HostSystem, InstalledLicense, System } from './system.ts';

/** The options of the plugin. */
export interface AdminConsoleOptions extends InstanceOptions {
    /** What the operations work on. Each part is optional; one that is absent has no routes. */
    readonly system: HostSystem;
    /**
     * Name of a strategy of the server that tells who asks, or false where `authorize` finds out by itself. No strategy of
     * token-auth: a key of the REST API is never enough.
     */
    readonly auth: string | false;
    /** Whether the request may administer the system. Asked for every route; anything but true is answered with 403, an error too. */
    readonly authorize: (request: Request) => boolean | Promise<boolean>;
    /** Who asks, as the audit trail of the system names them, for example `(request) => request.auth.credentials.user.id`. Required with one. */
    readonly actor?: ((request: Request) => string | Promise<string>) | undefined;
    /**
     * Whose exporters and deliveries alone the request may see and change, by the name that exporters have as `owner`. With it there are the
     * operations of an owner only: no keys, no overview, no imports, no licence, no audit trail.
     */
    readonly owner?: ((request: Request) => string | Promise<string>) | undefined;
    /** Path below which the routes are; empty for none. `/admin-console` by default. */
    readonly prefix?: string | undefined;
    /** Whether there are routes for programs. True by default; false where there are to be screens only. */
    readonly routes?: boolean | undefined;
    /** Adds pages for people: the same operations as screens. They need `auth` to name a strategy. */
    readonly screens?: ScreenOptions | undefined;
}

/** What the screens may be told. */
export interface ScreenOptions {
    /** Path below which the pages are; empty for none. `/admin` by default. */
    readonly prefix?: string | undefined;
    /** Who may show the pages in a frame: CSP sources with blanks between them, for example `'self'`. `'none'` by default. */
    readonly frameAncestors?: string | undefined;
    /** Path of a page that signs people out, which every page leads to. None by default. */
    readonly signOut?: string | undefined;
    /** Whether the cookie of the forms goes over https only. By default where the server itself speaks https. */
    readonly secure?: boolean | undefined;
    /**
     * What the pages say: another language than the English of `texts`, or several, of which a browser gets the one it wants most
     * (`Accept-Language`), and the first where it wants none of them.
     */
    readonly texts?: Texts | readonly Texts[] | undefined;
}

/** The options with their defaults. */
export type Settings = AdminConsoleOptions & { readonly prefix: string; readonly screens?: ScreenSettings | undefined };

/** The options of the screens with their defaults. */
export type ScreenSettings = ScreenOptions & { readonly prefix: string; readonly frameAncestors: string };

const prefixSchema = (byDefault: string): Joi.StringSchema =>
    Joi.string()
        .allow('')
        .pattern(ROUTE_PATH)
        .messages({ 'string.pattern.base': `{{#label}} must look like ${byDefault}` })
        .default(byDefault);

/** No more than sources: what stands there cannot end the directive and begin another. */
const ANCESTORS = /^[A-Za-z0-9'*.:/[\] -]+$/;

/** No path that begins with two slashes: that would be another host. */
const LOCAL_PATH = /^\/(?!\/)[\w./~-]*$/;

/** The rules for the options of the plugin. */
export const optionsSchema: Joi.ObjectSchema<Settings> = Joi.object<Settings, true>({
    system: Joi.object<HostSystem, true>({
        keys: objectWith<System['keys']>('create', 'list', 'reveal', 'revoke'),
        webhooks: Joi.object({
            publish: Joi.function().required(),
            exporters: objectWith<System['webhooks']['exporters']>(
                'create',
                'list',
                'show',
                'update',
                'start',
                'stop',
                'test',
                'remove',
            ).required(),
            deliveries: objectWith<System['webhooks']['deliveries']>('list', 'show', 'replay').required(),
            doctor: Joi.function(),
        }).unknown(),
        inventory: objectWith<System['inventory']>('importHosts'),
        license: objectWith<InstalledLicense>('inspect'),
        migrate: Joi.function(),
        audit: objectWith<AuditTrail>('record', 'list'),
    })
        .min(1)
        .custom(withPart)
        .required(),
    auth: authSchema.required(),
    authorize: Joi.function().required(),
    actor: Joi.function().when('system.audit', { not: Joi.exist(), otherwise: Joi.required() }),
    owner: Joi.function()
        .when('system.webhooks', { is: Joi.exist(), otherwise: Joi.forbidden() })
        .messages({ 'any.unknown': '{{#label}} needs system.webhooks: an owner has nothing else' }),
    prefix: prefixSchema('/admin-console'),
    routes: Joi.boolean()
        .when('screens', {
            not: Joi.exist(),
            // biome-ignore lint/suspicious/noThenProperty: the word of Joi
            then: Joi.valid(true).messages({ 'any.only': '{{#label}} must be true without screens: there would be nothing' }),
        })
        .default(true),
    screens: Joi.object<ScreenSettings, true>({
        prefix: prefixSchema('/admin'),
        frameAncestors: Joi.string()
            .max(1000)
            .pattern(ANCESTORS)
            .messages({ 'string.pattern.base': '{{#label}} must be sources of a content security policy' })
            .default("'none'"),
        signOut: Joi.string().pattern(LOCAL_PATH).messages({ 'string.pattern.base': '{{#label}} must look like /sign-out' }),
        secure: Joi.boolean(),
        // What is missing is said where they are loaded, by its name.
        texts: Joi.alternatives(Joi.object(), Joi.array().items(Joi.object()).min(1)),
    }).when('auth', {
        is: false,
        // biome-ignore lint/suspicious/noThenProperty: the word of Joi
        then: Joi.forbidden().messages({ 'any.unknown': '{{#label}} needs auth to name a strategy of the server' }),
    }),
    instance: instanceSchema,
}).required();

/** What is undefined is mostly a plugin that is registered later. */
function withPart(system: HostSystem, { message }: Joi.CustomHelpers): HostSystem | Joi.ErrorReport {
    const isThere = Object.values(system).some((part) => part !== undefined);
    return isThere ? system : message({ custom: '{{#label}} must have a part that is not undefined: register its plugin before' });
}

/** Whether the application lets a request in. What goes wrong while it is asked is logged, and lets nobody in. */
export async function isAuthorized(request: Request, { authorize }: Pick<Settings, 'authorize'>): Promise<boolean> {
    try {
        return (await authorize(request)) === true;
    } catch (error) {
        logFailure(request, 'admin-console', error);
        return false;
    }
}

/** Who asks. @throws ScanwireError `MISCONFIGURED` for what is no name; what the application throws. */
export async function callerIn(request: Request, { actor, owner }: Pick<Settings, 'actor' | 'owner'>): Promise<Caller> {
    return {
        ...(actor === undefined ? OPERATOR : { actor: named(await actor(request), 'actor') }),
        ...(owner !== undefined && { owner: named(await owner(request), 'owner') }),
        isLedHere: isLedFromElsewhere(request),
    };
}

/** The operations that there are for whoever may ask. */
export function operationsOf({ system, owner }: Settings): readonly OperationName[] {
    return Object.keys(handlersOf(system, owner === undefined ? OPERATOR : { ...OPERATOR, owner: '' })) as OperationName[];
}
