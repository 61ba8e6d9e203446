import Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import { checked, inMilliseconds, objectWith, storableText, storableTime } from '../schema-validation.ts';
import { KEEP_FOR } from '../webhooks/deliveries/retention.ts';

/** Something that somebody has done. No secrets and no bodies are in it. */
export interface AuditEntry {
    readonly id: string;
    /** When it began, in the store's time. */
    readonly at: Date;
    /** Who: as the application calls its user, `operator` for who runs commands on the data folder. */
    readonly actor: string;
    /** Name of the operation, for example `revokeKey`. */
    readonly operation: string;
    /** What it was done to: an id, or the name of a workspace, `old → new` of one that was renamed, or was to be; null where there is none. */
    readonly subject: string | null;
    /** `done`, else the code of the error; null while it is under way, and where the process has died or could not write it. */
    readonly outcome: string | null;
}

/** Which entries are asked for. */
export interface AuditFilter {
    readonly since?: Date;
    /** Those from before this time. */
    readonly until?: Date;
    readonly actor?: string;
    readonly operation?: string;
}

/** Reads of entries, newest first. */
export interface AuditQuery extends AuditFilter {
    /** Id of an entry: only older ones. */
    readonly after?: string;
    readonly limit: number;
}

/** Where the trail is kept. Methods reject with ScanwireError `UNAVAILABLE` when it cannot be reached. */
export interface AuditStore {
    /**
     * Writes that something begins, now in the store's time, and resolves with the id of the entry; only then is it there.
     *
     * @param keepFor Some of the entries that are older, in milliseconds, are removed: more than come, so that none stay. Null for none.
     */
    begin(entry: Pick<AuditEntry, 'actor' | 'operation' | 'subject'>, keepFor: number | null): Promise<string>;
    /** Writes what it came to. */
    complete(id: string, result: { readonly outcome: string; readonly subject: string | null }): Promise<void>;
    /** An `after` that is none finds nothing. */
    list(query: AuditQuery): Promise<readonly AuditEntry[]>;
}

/** What an audit trail is made of. */
export interface AuditTrailOptions {
    readonly store: AuditStore;
    /** Milliseconds for which entries are kept at least, null for ever. 30 days by default, from a day to a hundred years. */
    readonly keepFor?: number | null | undefined;
    /** Told that what something came to could not be written: it stays in the trail as what has begun. */
    readonly onError: (error: Error) => void;
}

/** Something that is to be in the trail. */
export interface Deed<Result> {
    readonly actor: string;
    readonly operation: string;
    readonly subject: string | null;
    /** What it was done to, where that is known in the end only. */
    readonly made?: (result: Result) => string | null;
}

/** What people have done. */
export interface AuditTrail {
    /**
     * Does it, once it is in the trail that it begins. What cannot be written there is not done.
     *
     * @throws ScanwireError `UNAVAILABLE` when it cannot be written, and whatever `act` throws.
     */
    record<Result>(deed: Deed<Result>, act: () => Promise<Result>): Promise<Result>;
    /** Newest first, 100 unless `limit` says otherwise, at most 1,000. @throws ScanwireError `INVALID_INPUT` with the field. */
    list(query?: Partial<AuditQuery>): Promise<readonly AuditEntry[]>;
}

const optionsSchema: Joi.ObjectSchema<AuditTrailOptions & { readonly keepFor: number | null }> = Joi.object({
    store: objectWith<AuditStore>('begin', 'complete', 'list').required(),
    keepFor: inMilliseconds(KEEP_FOR.min).allow(null).default(KEEP_FOR.byDefault),
    onError: Joi.function().required(),
}).required();

/** The rules of {@link AuditQuery}, with their defaults. */
export const auditQuerySchema: Joi.ObjectSchema<AuditQuery> = Joi.object<AuditQuery, true>({
    since: storableTime().description('Those from this time on'),
    until: storableTime().description('Those from before this time'),
    actor: storableText().description('Those of this user'),
    operation: storableText().description('Those of this operation'),
    after: storableText().description('Id of an entry: only older ones'),
    limit: Joi.number().integer().min(1).max(1000).default(100),
})
    .label('query')
    .default();

/** The trail in a store. @throws ScanwireError `MISCONFIGURED` with the option. */
export function auditTrail(options: AuditTrailOptions): AuditTrail {
    const { store, keepFor, onError } = checked(optionsSchema, options, { subject: 'auditTrail options', code: 'MISCONFIGURED' });

    async function complete(id: string, outcome: string, subject: string | null): Promise<void> {
        await store.complete(id, { outcome, subject: plain(subject) }).catch(onError);
    }

    return {
        async record({ actor, operation, subject, made = () => null }, act) {
            const id = await store.begin({ actor: plain(actor), operation, subject: plain(subject) }, keepFor);
            try {
                const result = await act();
                await complete(id, 'done', made(result) ?? subject);
                return result;
            } catch (error) {
                await complete(id, error instanceof ScanwireError ? error.code : 'INTERNAL', subject);
                throw error;
            }
        },

        async list(query) {
            return await store.list(checked(auditQuerySchema, query));
        },
    };
}

/** Room for both names of a workspace that is renamed. */
const MAX_TEXT = 520;

/** Comes from outside: what no database takes, or nobody can read, must not keep it out of the trail. */
function plain<Text extends string | null>(text: Text): Text {
    return (text === null ? null : text.slice(0, MAX_TEXT).replace(/[\p{Cc}\p{Cs}]/gu, '\uFFFD')) as Text;
}
