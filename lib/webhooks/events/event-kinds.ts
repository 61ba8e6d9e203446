import Joi from 'joi';
import type { ApplicationSchema } from '../../application-schema.ts';
import { ScanwireError } from '../../errors.ts';
import type { OnWarning } from '../../process-warning.ts';
import { timestamp } from '../../timestamp.ts';
import { EXPORT_TYPES, type ExportType, type RuleSet } from '../setting-values.ts';
import { describedBody, frequent, orderOf } from './event-body.ts';

/**
 * An event kind: what `X-Vendor-Event` may say, and what a body of that kind must look like. Its keys go out in the
 * order in which the schema, or `fields`, lists them.
 */
export interface EventKind extends ApplicationSchema {
    /** Letters, digits, `_`, `-` and `.`; at most 64. */
    readonly name: string;
    /** The export types that receive an event; every type when absent. */
    readonly types?: (event: { readonly rules: RuleSet | null }) => readonly ExportType[];
}

/** The table of event kinds of a process, in memory: every kind by its name. */
export type EventKinds = ReadonlyMap<string, EventKind>;

const requiredText = (): Joi.StringSchema => Joi.string().required();

/** Sent by this package itself when an exporter starts, stops or changes, and on request. */
export const testEvent: EventKind = {
    name: 'test',
    schema: Joi.object({
        timestamp: timestamp().required(),
        webhook_id: Joi.string().guid().required(),
        webhook_name: Joi.string().allow('').required(),
    }),
};

/** An RRN, the resource name of something in the product, in colon-separated segments. */
const RESOURCE_NAME = /^[^:\s]+(?::[^:\s]*)+$/;

/**
 * An investigation was created (`idr`: incident detection and response). Of an asset, `fqdn` is the name with its whole domain,
 * `shortname` the one without, `hostname` either: the name that the product shows.
 */
export const investigationCreated: EventKind = frequent(
    {
        name: 'idr_investigation_created',
        schema: Joi.object({
            timestamp: timestamp().required(),
            title: requiredText(),
            description: Joi.string().allow(''),
            link: requiredText(),
            investigationId: Joi.string().guid().required(),
            investigationRrn: Joi.string()
                .pattern(RESOURCE_NAME, 'colon-separated segments')
                .example('rrn:investigation:eu:7d2f1a52:investigation:1')
                .required(),
            actors: Joi.object({
                users: Joi.array()
                    .items(
                        Joi.object({
                            name: requiredText(),
                            distinguishedName: Joi.string(),
                            link: requiredText(),
                            // one text: several addresses are joined with a comma, none is ''
                            emails: Joi.string().allow('').required(),
                        }),
                    )
                    .required(),
                assets: Joi.array()
                    .items(Joi.object({ hostname: requiredText(), fqdn: Joi.string(), shortname: requiredText(), link: requiredText() }))
                    .required(),
            }).required(),
        }),
        types: ({ rules }) => (rules === 'library' ? EXPORT_TYPES.filter((type) => type !== 'investigation_legacy') : EXPORT_TYPES),
    },
    [RESOURCE_NAME],
);

/** Body of an event that tells what became of an exporter. It goes to exporters that name the kind, but not to the one that it is about. */
const exporterSchema = Joi.object({
    timestamp: timestamp().required(),
    exporterId: Joi.string().guid().required(),
    exporterName: Joi.string().allow('').required(),
    collector: requiredText(),
    owner: Joi.string(),
    // why it was stopped
    reason: Joi.string(),
    // in a row
    failures: Joi.number().integer().min(0).required(),
    failingSince: timestamp(),
    lastOutcome: Joi.object({ code: requiredText(), detail: Joi.string().allow('').required() }),
    // a failure from then on stops it
    stopsAt: timestamp(),
});

/**
 * - `exporter_failing`: its breaker opened.
 * - `exporter_stopped`: it was stopped, by its receiver's answer or since it had failed for too long; not by a user.
 * - `exporter_recovered`: its receiver has answered a delivery with a 2xx after one of these.
 */
export type ExporterKind = 'exporter_failing' | 'exporter_stopped' | 'exporter_recovered';

/** Sent by scanwire itself. */
export const exporterKinds: Readonly<Record<ExporterKind, EventKind>> = {
    exporter_failing: { name: 'exporter_failing', schema: exporterSchema },
    exporter_stopped: { name: 'exporter_stopped', schema: exporterSchema },
    exporter_recovered: { name: 'exporter_recovered', schema: exporterSchema },
};

const NOTICE_PREFIX = 'exporter_';

/** Whether the kind is that of a notice, which tells about an exporter itself: such events go only to those who name the kind in full. */
export function isNoticeKind(kind: string): boolean {
    return kind.startsWith(NOTICE_PREFIX);
}

/**
 * The table of event kinds: {@link testEvent}, {@link investigationCreated}, {@link exporterKinds} and the application's own.
 *
 * @param onWarning Told of schemas that leave the types of their fields open; see {@link describedBody}.
 * @throws ScanwireError `MISCONFIGURED` for a malformed name, one that exists already, or one of a notice: nobody could publish it.
 */
export function eventKinds(own: readonly EventKind[] = [], onWarning?: OnWarning): EventKinds {
    const table = new Map([testEvent, investigationCreated, ...Object.values(exporterKinds)].map((kind) => [kind.name, kind]));

    for (const [index, kind] of own.entries()) {
        const field = `kinds[${index}].name`;
        if (!/^[\w.-]{1,64}$/.test(kind.name)) {
            const rule = 'must be 1 to 64 letters, digits, "_", "-" and "."';
            throw new ScanwireError('MISCONFIGURED', `webhooks options: ${field} ${rule}`, { field });
        }

        if (table.has(kind.name)) {
            throw new ScanwireError('MISCONFIGURED', `webhooks options: ${field} must be new: ${kind.name} exists already`, { field });
        }

        if (isNoticeKind(kind.name)) {
            const rule = `must not begin with ${NOTICE_PREFIX}: only scanwire publishes such kinds, which tell about exporters`;
            throw new ScanwireError('MISCONFIGURED', `webhooks options: ${field} ${rule}`, { field });
        }

        describedBody(kind, onWarning);
        orderOf(kind);
        table.set(kind.name, kind);
    }

    return table;
}

/** The export types that receive an event of this kind. */
export function typesFor(kind: EventKind, rules: RuleSet | null): readonly ExportType[] {
    return kind.types?.({ rules }) ?? EXPORT_TYPES;
}
