/** Somebody whom an investigation is about. */
export interface InvestigatedUser {
    readonly name: string;
    readonly distinguishedName?: string | undefined;
    readonly link: string;
    /** Several addresses are joined with a comma; none is an empty text. */
    readonly emails: string;
}

/** A machine that an investigation is about. `fqdn` is its name with the whole domain, `shortname` without it, `hostname` the one that the product shows. */
export interface InvestigatedAsset {
    readonly hostname: string;
    readonly fqdn?: string | undefined;
    readonly shortname: string;
    readonly link: string;
}

/** Body of `idr_investigation_created`. */
export interface InvestigationCreated {
    /** A date, or an ISO 8601 text. */
    readonly timestamp: Date | string;
    readonly title: string;
    readonly description?: string | undefined;
    readonly link: string;
    /** A UUID. */
    readonly investigationId: string;
    /** RRN: the product's resource name of it, in colon-separated segments, for example `rrn:investigation:eu:7d2f1a52:investigation:1`. */
    readonly investigationRrn: string;
    readonly actors: {
        readonly users: readonly InvestigatedUser[];
        readonly assets: readonly InvestigatedAsset[];
    };
}

/**
 * Bodies of events by their kind, as whoever publishes gives them. An application adds its own kinds:
 *
 * @example
 * declare module 'scanwire/webhooks' {
 *     interface EventBodies {
 *         'scan.finished': { readonly hosts: number };
 *     }
 * }
 */
export interface EventBodies {
    readonly idr_investigation_created: InvestigationCreated;
}

/** What the compiler asks of a body: of a kind that {@link EventBodies} does not have, or that is known at run time only, nothing. */
export type EventBody<Kind extends string> = Kind extends keyof EventBodies ? EventBodies[Kind] : unknown;
