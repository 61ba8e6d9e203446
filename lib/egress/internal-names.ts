/** Lower-case and without the trailing dot: the form in which names are compared. */
export function normalName(name: string): string {
    const lower = name.toLowerCase();
    return lower.endsWith('.') ? lower.slice(0, -1) : lower;
}

const METADATA_NAMES: ReadonlySet<string> = new Set([
    'metadata',
    'metadata.google.internal',
    'metadata.goog',
    'metadata.azure.internal',
    'metadata.oraclecloud.com',
    'metadata.tencentyun.com',
    'metadata.platformequinix.com',
    'metadata.packet.net',
    'instance-data',
    'instance-data.ec2.internal',
]);

/** Names under which clouds serve the metadata of a machine; `name` as {@link normalName} gives it. */
export function isMetadataName(name: string): boolean {
    return METADATA_NAMES.has(name);
}

/** Ends of names that never lead to a public receiver: RFC 6761, 6762, 7686, 8375, 9476 and ICANN's `internal`. */
const INTERNAL_SUFFIXES: readonly string[] = ['localhost', 'local', 'internal', 'home.arpa', 'onion', 'alt', 'localdomain'];

/** Names that always lead inside, whatever the resolver says; `name` as {@link normalName} gives it. */
export function isInternalName(name: string): boolean {
    return INTERNAL_SUFFIXES.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
}
