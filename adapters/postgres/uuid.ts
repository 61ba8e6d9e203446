const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether the database would take the text as a `uuid`; an id that it would refuse names nothing. */
export function isUuid(text: string): boolean {
    return UUID.test(text);
}
