import { FINDING_WORDS, type FindingCode, filledFinding } from './doctor-words.ts';

/** What a diagnosis has found of one part of the deployment, or of one step to a receiver. (Findings of scans are another thing: `lib/inventory`.) */
export interface Finding {
    /**
     * What was looked at; `names` are the host names of the receivers of running exporters, 50 at most. Only the command line adds `disk`,
     * and only the operations of the admin console and of the command line `api keys`. For a
     * receiver these are the steps `resolve`, `connect`, `tls`, `certificate`, `first byte`, `answer`; and `settings` or `access token` where one of
     * these kept the receiver from being called.
     */
    readonly part: FindingPart;
    readonly state: (typeof FINDING_STATES)[number];
    /** The finding as a code, for programs and for the admin console in other languages; absent for the steps to a receiver. */
    readonly code?: FindingCode;
    /** What is filled into the words of the code. */
    readonly values?: readonly string[];
    /** One sentence for people, without secrets. */
    readonly text: string;
    /** What to do about it; null where nothing is to be done. */
    readonly advice: string | null;
}

/** The states that a part may be in. */
export const FINDING_STATES = ['ok', 'warning', 'wrong'] as const;

/** Parts of a deployment that are looked at. */
export const FINDING_PARTS = [
    'store',
    'clock',
    'keys',
    'api keys',
    'queue',
    'workers',
    'names',
    'exporters',
    'disk',
    'exporter',
    'settings',
    'access token',
    'resolve',
    'connect',
    'tls',
    'certificate',
    'first byte',
    'answer',
] as const;

/** A part of a deployment that is looked at. */
export type FindingPart = (typeof FINDING_PARTS)[number];

/** A finding that has a code. */
export function found(part: FindingPart, state: Finding['state'], code: FindingCode, values: readonly string[] = []): Finding {
    return { part, state, code, values, ...filledFinding(FINDING_WORDS[code], values) };
}
