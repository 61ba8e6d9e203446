/** A step of the schema. Once released it never changes: what comes later is another step. */
export interface Migration {
    /** Begins with a number that orders it, for example `0001-inventory-and-keys`. */
    readonly id: string;
    readonly sql: string;
}
