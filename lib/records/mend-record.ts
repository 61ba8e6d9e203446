import { ScanwireError } from '../errors.ts';
import { isObject } from '../schema-validation.ts';

/**
 * What can be mended in a record as older publications have it:
 *
 * - `port_string`: the port was a string of digits and becomes an integer;
 * - `vhost_null`: `vhost` was null and is dropped;
 * - `path_missing`: there was no `path`, it becomes `/`;
 * - `subject_parts`: the subject had parts other than `OU` and `CN`; they are dropped.
 */
export type MendKind = 'port_string' | 'vhost_null' | 'path_missing' | 'subject_parts';

/** How many records each kind of mend was made in. */
export type MendCounts = Readonly<Record<MendKind, number>>;

/** Names of sets of mends. There is one, for published files, with all kinds; a name is asked for so that there can be another. */
export const MEND_PROFILES = ['import'] as const;

/** Name of a set of mends. */
export type MendProfile = (typeof MEND_PROFILES)[number];

/** A value after mending. */
export interface MendedRecord {
    /** To be checked still: a mend does not make the rest right. The value as it was, when nothing was mended. */
    readonly value: unknown;
    /** What was mended. */
    readonly mends: readonly MendKind[];
}

type Fields = Readonly<Record<string, unknown>>;

const SUBJECT_PARTS: readonly string[] = ['OU', 'CN'];
const PORT = /^[1-9][0-9]{0,4}$/;

/** Each gives the mended record, null for one that does not need it. In the order in which they are made. */
const MENDS: Readonly<Record<MendKind, (record: Fields) => Fields | null>> = {
    port_string: (record) => (typeof record.port === 'string' && PORT.test(record.port) ? { ...record, port: Number(record.port) } : null),
    vhost_null: (record) => (record.vhost === null ? withoutVhost(record) : null),
    path_missing: (record) => (Object.hasOwn(record, 'path') ? null : { ...record, path: '/' }),
    subject_parts: (record) =>
        isObject(record.subject) && Object.keys(record.subject).some((part) => !SUBJECT_PARTS.includes(part))
            ? { ...record, subject: knownParts(record.subject) }
            : null,
};

function withoutVhost({ vhost: _, ...record }: Fields): Fields {
    return record;
}

function knownParts(subject: Fields): Fields {
    return Object.fromEntries(SUBJECT_PARTS.filter((part) => Object.hasOwn(subject, part)).map((part) => [part, subject[part]]));
}

/** All kinds, in the order in which they are mended. */
export const MEND_KINDS = Object.keys(MENDS) as readonly MendKind[];

/** @throws ScanwireError `MISCONFIGURED` for a name that no profile has. */
export function assertMendProfile(profile: string): asserts profile is MendProfile {
    if (!MEND_PROFILES.some((name) => name === profile)) {
        throw new ScanwireError('MISCONFIGURED', `mend must be one of ${MEND_PROFILES.join(', ')}`, { field: 'mend' });
    }
}

/**
 * Mends a value as the profile says; what is no object stays as it is. The value itself is never changed.
 *
 * @throws ScanwireError `MISCONFIGURED` for a name that no profile has.
 */
export function mendRecord(value: unknown, profile: MendProfile): MendedRecord {
    assertMendProfile(profile);
    if (!isObject(value)) {
        return { value, mends: [] };
    }

    const mends: MendKind[] = [];
    let record: Fields = value;
    for (const kind of MEND_KINDS) {
        const mended = MENDS[kind](record);
        if (mended !== null) {
            record = mended;
            mends.push(kind);
        }
    }

    return { value: record, mends };
}
