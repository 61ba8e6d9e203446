/** Attributes of an element, as the parser gives them. */
export type Attributes = Readonly<Record<string, string | undefined>>;

/** What a scan says about an operating system; absent where it says nothing. */
export interface DetectedOs {
    readonly os_name?: string;
    readonly os_flavor?: string;
    readonly os_sp?: string;
    readonly detected_arch?: string;
}

/** Collects the guesses of one host and keeps the likeliest: accuracies are equal often, the first one wins then. */
export interface OsGuesses {
    /** An `osmatch`: the name of a system, for example `Microsoft Windows 7 SP1`. */
    match(attributes: Attributes): void;
    /** An `osclass`, inside of its `osmatch` (since nmap 6) or beside it (before). */
    classify(attributes: Attributes): void;
    best(): DetectedOs;
}

interface Guess {
    readonly accuracy: number;
    readonly attributes: Attributes;
}

const SERVICE_PACK = /\b(?:SP|Service Pack )(\d{1,2})\b/;
const ARCHITECTURE = /\b(x86_64|amd64|x64|x86|i[3-6]86|aarch64|arm64|arm|mips(?:el)?|sparc(?:64)?|powerpc|ppc(?:64)?|alpha|ia64)\b/i;

export function osGuesses(): OsGuesses {
    let match: Guess | null = null;
    let classification: Guess | null = null;

    return {
        match(attributes) {
            const guess = guessOf(attributes);
            if (match === null || guess.accuracy > match.accuracy) {
                // The classes of a less likely match are worth nothing now; those before the first match belong to it.
                classification = match === null ? classification : null;
                match = guess;
            }
        },

        classify(attributes) {
            const guess = guessOf(attributes);
            if (classification === null || guess.accuracy > classification.accuracy) {
                classification = guess;
            }
        },

        best: () => describe(match?.attributes.name ?? '', classification?.attributes ?? {}),
    };
}

function guessOf(attributes: Attributes): Guess {
    const accuracy = Number(attributes.accuracy);
    return { accuracy: Number.isFinite(accuracy) ? accuracy : 0, attributes };
}

function describe(matchName: string, { vendor = '', osfamily = '', osgen = '' }: Attributes): DetectedOs {
    const osName = systemName(vendor, osfamily) || matchName;
    const servicePack = SERVICE_PACK.exec(matchName)?.[1];
    const architecture = ARCHITECTURE.exec(matchName)?.[1];
    return {
        ...(osName !== '' && { os_name: osName }),
        ...(osgen !== '' && { os_flavor: osgen }),
        ...(servicePack !== undefined && { os_sp: `SP${servicePack}` }),
        ...(architecture !== undefined && { detected_arch: architecture }),
    };
}

/** `Microsoft` and `Windows` are `Microsoft Windows`; `Linux` and `Linux` are `Linux`. */
function systemName(vendor: string, family: string): string {
    return family.toLowerCase().startsWith(vendor.toLowerCase()) ? family : `${vendor} ${family}`.trim();
}
