import { ScanwireError } from '../../../lib/errors.ts';
import type { HandledOperation } from '../handlers.ts';
import type { OperationName } from '../operations.ts';
import type { Texts } from './languages.ts';
import type { LivePart } from './live-streams.ts';
import type { Page, Templates } from './renderer.ts';

/** What somebody asks of a screen. */
export interface Visit {
    /** Parts of the path that a screen names in braces. */
    readonly params: Readonly<Record<string, string>>;
    readonly query: URLSearchParams;
    /** What a form has sent; empty for a GET. */
    readonly form: URLSearchParams;
    readonly now: Date;
    /** What pages say to whoever asks, in their language. */
    readonly texts: Texts;
    /** Whether the page is asked for by a script, which can look at what goes on by itself. */
    readonly scripted: boolean;
    /** Whose exporters and deliveries alone there are; null for those of all. */
    readonly owner: string | null;
    /** Whether there is this operation: a store may lack what it needs. */
    offers(operation: OperationName): boolean;
    /** Does an operation of the console, as its route and its command do. */
    readonly perform: HandledOperation;
}

/** A time as forms send it, which is in UTC; a text that is none stays, so that the operation refuses it by its field. */
export function timeIn(text: string): Date {
    const time = new Date(`${text}Z`);
    return Number.isNaN(time.getTime()) ? (text as unknown as Date) : time;
}

/** What an operation answers; null where the application has left out its part. */
export async function unlessAbsent<T>(ask: () => Promise<T>): Promise<T | null> {
    try {
        return await ask();
    } catch (error) {
        if (error instanceof ScanwireError && error.code === 'NOT_FOUND') {
            return null;
        }
        throw error;
    }
}

/** Path below the base that is shown next. */
export interface Redirect {
    readonly to: string;
}

/** A failure of the second step of two: people go on where the first has led. */
export class FailedOnTheWay extends Error {
    /** Below the base. */
    readonly to: string;

    constructor(cause: unknown, to: string) {
        super('Failed on the way', { cause });
        this.to = to;
    }
}

/** A page or an action of the console. */
export interface ScreenRoute {
    readonly method: 'GET' | 'POST';
    /** Below the base. */
    readonly path: string;
    /** @throws ScanwireError what is shown as a page of its own. */
    answer(visit: Visit): Promise<Page | Redirect>;
}

/** A part of the screens: what it shows, and where. */
export interface Screen {
    /** Of its first page, below the base. */
    readonly path: string;
    readonly title: (texts: Texts) => string;
    readonly templates: Templates;
    readonly routes: readonly ScreenRoute[];
    readonly live?: readonly LivePart[];
}
