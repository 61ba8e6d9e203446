import Joi from 'joi';
import { ScanwireError } from '../scanwire-error.ts';
import { timestamp } from '../timestamp-text.ts';
import type { ExportType } from './exporter.ts';

/** The rule set whose rule raised an investigation. */
export type RuleSet = 'legacy' | 'library';

/** One row of the event table: what `X-Vendor-Event` may say, and what a body of that kind must look like. */
export interface EventKind {
    /** Letters, digits, `_`, `-` and `.`; at most 64. */
    readonly name: string;
    /** The body. Its keys go out in the order in which the schema lists them. */
    readonly schema: Joi.ObjectSchema;
    /** The export types that receive an event; every type when absent. */
    readonly types?: (event: { readonly rules: RuleSet | null }) => readonly ExportType[];
}

export type EventKinds = ReadonlyMap<string, EventKind>;

const EVERY_TYPE: readonly ExportType[] = ['investigation', 'investigation_legacy', 'investigation_legacy_and_library'];

const text = (): Joi.StringSchema => Joi.string().required();
const knownText = (): Joi.StringSchema => Joi.string();

/** Sent by scanwire itself when an exporter starts, stops or changes. */
export const testEvent: EventKind = {
    name: 'test',
    schema: Joi.object({
        timestamp: timestamp().required(),
        webhook_id: Joi.string().guid().required(),
        webhook_name: Joi.string().allow('').required(),
    }),
};

/** An investigation was created. */
export const investigationCreated: EventKind = {
    name: 'idr_investigation_created',
    schema: Joi.object({
        timestamp: timestamp().required(),
        title: text(),
        description: knownText().allow(''),
        link: text(),
        investigationId: Joi.string().guid().required(),
        investigationRrn: Joi.string()
            .pattern(/^[^:\s]+(?::[^:\s]*)+$/, 'colon-separated segments')
            .required(),
        actors: Joi.object({
            users: Joi.array()
                .items(
                    Joi.object({ name: text(), distinguishedName: knownText(), link: text(), emails: Joi.string().allow('').required() }),
                )
                .required(),
            assets: Joi.array()
                .items(Joi.object({ hostname: text(), fqdn: knownText(), shortname: text(), link: text() }))
                .required(),
        }).required(),
    }),
    types: ({ rules }) => (rules === 'library' ? EVERY_TYPE.filter((type) => type !== 'investigation_legacy') : EVERY_TYPE),
};

/**
 * The event table: the two kinds of the specification and the host's own.
 *
 * @throws ScanwireError `MISCONFIGURED` for a malformed name or one that is taken.
 */
export function eventKinds(own: readonly EventKind[] = []): EventKinds {
    const table = new Map([testEvent, investigationCreated].map((kind) => [kind.name, kind]));

    for (const [index, kind] of own.entries()) {
        if (!/^[\w.-]{1,64}$/.test(kind.name)) {
            throw new ScanwireError('MISCONFIGURED', `Invalid event kind name: 1 to 64 letters, digits, "_", "-" or "."`, {
                field: `kinds[${index}].name`,
            });
        }

        if (table.has(kind.name)) {
            throw new ScanwireError('MISCONFIGURED', `Event kind ${kind.name} exists already`, { field: `kinds[${index}].name` });
        }

        table.set(kind.name, kind);
    }

    return table;
}

/** The export types that receive an event of this kind. */
export function typesFor(kind: EventKind, rules: RuleSet | null): readonly ExportType[] {
    return kind.types?.({ rules }) ?? EVERY_TYPE;
}
