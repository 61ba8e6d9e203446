import Joi from 'joi';
import { type EgressGuard, type EgressPolicy, egressGuard } from '../../lib/egress/guard.ts';
import { type Resolver, resolverSchema } from '../../lib/egress/resolver.ts';
import { ScanwireError } from '../../lib/errors.ts';
import type { LicenseSource } from '../../lib/license/license-source.ts';
import { checked, inMilliseconds, objectWith, ROUTE_PATH } from '../../lib/schema-validation.ts';
import { assertSettingsOfHost, type DeploymentSettings, type Role } from '../../lib/webhooks/deployment-settings.ts';
import { ownerSchema } from '../../lib/webhooks/exporters/exporter.ts';
import {
    drainTimeoutFor,
    type WebhookStores,
    type WebhooksOptions,
    type WebhooksSettings,
    webhookStoreSchemas,
    webhooksSettingSchemas,
    workerSettingSchemas,
} from '../../lib/webhooks/options.ts';
import { httpSender, senderLimitSchemas } from '../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';
import { mapErrorsSchema } from '../errors.ts';
import { type HealthRoutes, healthSchema } from '../health.ts';
import { type InstanceOptions, instanceSchema, strategySchema } from '../instance.ts';

/** The option `routes`. */
export interface ExporterRoutes {
    /** What stands before `/events` and `/deliveries`. Default `/webhook-exporter`. */
    readonly prefix?: string;
    /** Name of the authentication strategy. Default `token`. */
    readonly auth?: string;
    /** Whether the licence is valid now; asked on every request. Without it none is asked for. */
    readonly license?: LicenseSource;
}

/** Rule of the option `routes`. */
const routesSchema: Joi.ObjectSchema<CheckedRoutes> = Joi.object({
    prefix: Joi.string().pattern(ROUTE_PATH).message('{{#label}} must look like /webhook-exporter').default('/webhook-exporter'),
    auth: strategySchema.default('token'),
    license: objectWith<LicenseSource>('valid'),
});

/** The option with its defaults. */
export type CheckedRoutes = ExporterRoutes & Required<Pick<ExporterRoutes, 'prefix' | 'auth'>>;

/** Options of the plugin. */
export interface WebhookExporterOptions extends WebhooksSettings, InstanceOptions {
    /** Where exporters, events and deliveries are kept, for example `postgresWebhooks({ pool })`. */
    readonly stores: WebhookStores;
    /** The collectors that this process sends for; none where workers run elsewhere. */
    readonly collectors?: readonly string[];
    /** Attempts that this process makes at once for each of its collectors. */
    readonly concurrency?: number;
    /** Time for stopping the server's part in sending, in milliseconds; longer than an attempt, or what is being sent is sent again. */
    readonly drainTimeout?: number;
    /** Time for a whole attempt, from DNS to the last byte, in milliseconds. */
    readonly attemptTimeout?: number;
    /** Time to connect, in milliseconds. */
    readonly connectTimeout?: number;
    /** Who is asked for the addresses of receivers: the name servers (`dns`), or the machine in all its ways (`system`). */
    readonly resolver?: Resolver;
    /** Non-public receiver addresses that may be called: CIDR blocks and host names. */
    readonly egress?: EgressPolicy;
    /** Whether every ScanwireError that leaves a handler of the server is answered with its status, as `toBoom` does. Default false. */
    readonly mapErrors?: boolean;
    /** Routes for keys with the scopes `events:publish` and `deliveries:read`; none by default. */
    readonly routes?: ExporterRoutes | undefined;
    /** Routes that tell, to anybody, whether the process lives and is ready; none by default. */
    readonly health?: HealthRoutes | undefined;
}

type Optional = 'instance' | 'routes' | 'health' | 'drainTimeout';

/** The options with their defaults. */
type Settings = Required<Omit<WebhookExporterOptions, Optional>> &
    Pick<WebhookExporterOptions, 'instance' | 'health' | 'drainTimeout'> & { readonly routes?: CheckedRoutes };

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<Settings> = Joi.object({
    stores: Joi.object(webhookStoreSchemas).required(),
    ...webhooksSettingSchemas,
    ...workerSettingSchemas,
    // `scanwire serve --drain-timeout 1` leaves half of a second to it.
    drainTimeout: inMilliseconds(500).max(3_600_000),
    attemptTimeout: senderLimitSchemas.attemptTimeout,
    connectTimeout: senderLimitSchemas.connectTimeout.max(Joi.ref('attemptTimeout')),
    resolver: resolverSchema,
    egress: Joi.object({
        allow: Joi.array().items(Joi.string()).required(),
        owners: Joi.object().pattern(ownerSchema, Joi.array().items(Joi.string())),
    }).default({ allow: [] }),
    mapErrors: mapErrorsSchema,
    routes: routesSchema,
    health: healthSchema,
    instance: instanceSchema,
});

/** What options describe. */
interface DescribedWebhooks extends Pick<Settings, 'collectors' | 'concurrency' | 'mapErrors' | 'routes' | 'health' | 'maxBodyBytes'> {
    readonly drainTimeout: number;
    readonly attemptTimeout: number;
    readonly webhooks: Webhooks;
    /** Makes sure that the options are those of the host that has stored these settings. @throws ScanwireError `MISCONFIGURED`. */
    assertOfHost(stored: DeploymentSettings | null, role: Role): void;
}

/**
 * The webhook exporter that the options describe, and how a server drives it.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the option and the rule it breaks.
 */
export function webhooksOf(
    options: WebhookExporterOptions,
    more: Pick<WebhooksOptions, 'onError' | 'onWarning' | 'onEvent' | 'role' | 'onOutdated'>,
): DescribedWebhooks {
    const {
        collectors,
        concurrency,
        drainTimeout: given,
        mapErrors,
        routes,
        health,
        instance: _,
        stores,
        egress,
        attemptTimeout,
        connectTimeout,
        resolver,
        ...settings
    } = checked(optionsSchema, options, { subject: SUBJECT, code: 'MISCONFIGURED' });
    const guard = guardOf(egress);
    const sender = httpSender({ guard, attemptTimeout, connectTimeout, resolver });
    const { maxBodyBytes } = settings;
    const drainTimeout = given ?? drainTimeoutFor(attemptTimeout);
    const stop = { drainTimeout, attemptTimeout };
    const driven = { collectors, concurrency, ...stop, mapErrors, maxBodyBytes, ...(routes && { routes }), ...(health && { health }) };
    const assertOfHost: DescribedWebhooks['assertOfHost'] = (stored, role) =>
        assertSettingsOfHost({ ...settings, guard, sender }, stored, role);
    return { webhooks: webhooks({ ...settings, ...stores, guard, sender, ...more }), assertOfHost, ...driven };
}

const SUBJECT = 'webhook-exporter options';

/** The guard names the entry of its list, and this the option that the list stands in. */
function guardOf(egress: Required<WebhookExporterOptions>['egress']): EgressGuard {
    try {
        return egressGuard(egress);
    } catch (error) {
        const { code, message, field, cause } = error as ScanwireError;
        throw new ScanwireError(code, `${SUBJECT}: egress.${field}: ${message}`, { field: `egress.${field}`, cause });
    }
}
