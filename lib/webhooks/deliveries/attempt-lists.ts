import { ScanwireError } from '../../errors.ts';
import { checked } from '../../schema-validation.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { DeliveryFilter } from './deliveries.ts';
import { heeded, wholeAttemptFilterSchema, wholeAttemptQuerySchema } from './delivery-filter.ts';
import type { Attempt } from './delivery-store.ts';
import { countUpTo, type DeliveryCount } from './kept-counts.ts';

/** An attempt that has ended, as one of many deliveries. */
export interface ListedAttempt extends Attempt {
    /** The id of its delivery, a colon and the number of the attempt. */
    readonly id: string;
    readonly deliveryId: string;
    readonly eventId: string;
    readonly kind: string;
    readonly exporterId: string;
}

/** Which attempts are asked for. The times and the outcome are those of the attempt; everything else is asked of its delivery. */
export interface AttemptFilter extends Omit<DeliveryFilter, 'since' | 'until' | 'outcome' | 'after'> {
    readonly deliveryId?: string;
    /** Those that began at this time or later. */
    readonly since?: Date;
    /** Those that began before this time. */
    readonly until?: Date;
    /** What they came to. */
    readonly outcome?: NonNullable<DeliveryFilter['outcome']>;
    /** Id of an attempt: only those that are listed behind it. */
    readonly after?: string;
}

/** Reads of many attempts: those of the newest deliveries first, and of each the last ones. */
export interface AttemptQuery extends AttemptFilter {
    readonly limit: number;
}

/** Reads of attempts that have ended; those that are under way are shown with their deliveries. */
export interface AttemptStore {
    list(query: AttemptQuery): Promise<readonly ListedAttempt[]>;
    /** How many there are, counted up to `max`. */
    count(filter: AttemptFilter, max: number): Promise<number>;
}

/** Ended attempts, of many deliveries. */
export interface AttemptLists {
    /**
     * Those of the newest deliveries first, and of each the last ones; 100 unless `limit` says otherwise, at most 1,000.
     *
     * @throws ScanwireError `INVALID_INPUT` with the field; `MISCONFIGURED` when the store does not list them.
     */
    list(query?: Partial<AttemptQuery>): Promise<readonly ListedAttempt[]>;
    /** How many there are of them, up to 10,000. @throws ScanwireError as `list`. */
    count(filter?: AttemptFilter): Promise<DeliveryCount>;
}

/** The attempts of a store. */
export function attemptListsOf({ deliveries }: Pick<WebhooksContext, 'deliveries'>): AttemptLists {
    function lists(): AttemptStore {
        if (!deliveries.attemptLists) {
            throw new ScanwireError('MISCONFIGURED', 'Cannot list attempts: the store does not');
        }
        return deliveries.attemptLists;
    }

    return {
        list: async (query) => await lists().list(heeded(checked(wholeAttemptQuerySchema, query), deliveries, 'attempts')),
        count: async (filter) => {
            const asked = heeded(checked(wholeAttemptFilterSchema, filter), deliveries, 'attempts');
            return await countUpTo((max) => lists().count(asked, max));
        },
    };
}

/** The id of an attempt. */
export function attemptId(deliveryId: string, number: number): string {
    return `${deliveryId}:${number}`;
}

/** What the id of an attempt is made of; null for a text that is none. */
export function attemptOf(id: string): { readonly deliveryId: string; readonly number: number } | null {
    const colon = id.lastIndexOf(':');
    const [deliveryId, number] = [id.slice(0, colon), Number(id.slice(colon + 1))];
    const isNumber = Number.isInteger(number) && number >= 1 && number < MAX_NUMBER;
    return isNumber && attemptId(deliveryId, number) === id ? { deliveryId, number } : null;
}

/** The smallest number that is too large for the column of attempt numbers. */
const MAX_NUMBER = 2 ** 31;
