/** The architectures that clients know; anything else goes out as `Unknown`. */
export const KNOWN_ARCHES: ReadonlySet<string> = new Set([
    'armbe',
    'armle',
    'cbea',
    'cbea64',
    'cmd',
    'java',
    'mips',
    'mipsbe',
    'mipsle',
    'php',
    'ppc',
    'ppc64',
    'ruby',
    'sparc',
    'tty',
    'x64',
    'x86',
    'x86_64',
    '',
    'Unknown',
]);

/** The two fields of a host that say what it runs on; a field that is absent is not known by this source. */
export interface ArchFields {
    readonly arch?: string | null;
    readonly detected_arch?: string | null;
}

/** An arch that clients do not know becomes `Unknown`, and its text is kept in `detected_arch`. */
export function normaliseArch(fields: ArchFields): ArchFields {
    const { arch } = fields;
    return arch === undefined || arch === null || KNOWN_ARCHES.has(arch) ? fields : { arch: 'Unknown', detected_arch: arch };
}
