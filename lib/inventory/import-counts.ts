/** What an import makes of a host or a service that it names, in the order in which it is told. */
export const VERDICTS = ['new', 'changed', 'unchanged', 'gone', 'refused'] as const;

/**
 * How many hosts, services, notes or vulnerabilities came to what: `new` were not there before; of those that were, `gone` are hosts that are `down` now, services
 * that are `closed`, and what an import that replaces has removed; `changed` differ otherwise from what the workspace held, and `unchanged` differ in nothing and were not written; `refused`
 * were left out, since their host is outside of the boundary of the workspace, or has too many that are called the same. A host that a source names
 * several times is counted once, by what all of it says together, but each time where it is refused.
 */
export type ImportCounts = Readonly<Record<(typeof VERDICTS)[number], number>>;

/** With zero for what is not given; of what is given only the counts. */
export function importCounts(counts: Partial<ImportCounts> = {}): ImportCounts {
    const { new: made = 0, changed = 0, unchanged = 0, gone = 0, refused = 0 } = counts;
    return { new: made, changed, unchanged, gone, refused };
}

/** Of both together. */
export function addCounts(one: ImportCounts, other: ImportCounts): ImportCounts {
    return {
        new: one.new + other.new,
        changed: one.changed + other.changed,
        unchanged: one.unchanged + other.unchanged,
        gone: one.gone + other.gone,
        refused: one.refused + other.refused,
    };
}

/** What an import came to, by kinds of rows. */
export type ImportedCounts = Readonly<Record<'hosts' | 'services' | 'notes' | 'vulns', ImportCounts>>;

/** The same of each kind. */
export function eachCount(countOf: (kind: keyof ImportedCounts) => ImportCounts): ImportedCounts {
    return { hosts: countOf('hosts'), services: countOf('services'), notes: countOf('notes'), vulns: countOf('vulns') };
}

/** What an import came to, and what was left out of it. */
export function withRefused(counts: ImportedCounts, refused: ImportedCounts): ImportedCounts {
    return eachCount((kind) => addCounts(counts[kind], refused[kind]));
}

/** Whether anything was written, or removed. */
export function anyChanged(counts: ImportedCounts): boolean {
    return Object.values(counts).some((one) => one.new + one.changed + one.gone > 0);
}

/** Whether anything was left out. */
export function anyRefused(counts: ImportedCounts): boolean {
    return Object.values(counts).some(({ refused }) => refused > 0);
}

/**
 * What the same import comes to once more: all that it has named is unchanged. Null where that is not known: a service that was closed with others is told of when that
 * closes it, and no more.
 *
 * @param named Without what was removed since nothing named it.
 */
export function countsAgain(named: ImportedCounts): ImportedCounts | null {
    return named.services.gone > 0
        ? null
        : eachCount((kind) => {
              const { new: made, changed, unchanged, gone } = named[kind];
              return importCounts({ unchanged: made + changed + unchanged + gone });
          });
}

/** What {@link countsText} says of nothing. */
export const NONE = 'none';

/** For people: `5 new, 2 gone`; what there is none of is left out. */
export function countsText(counts: ImportCounts): string {
    const parts = VERDICTS.filter((verdict) => counts[verdict] > 0).map((verdict) => `${counts[verdict]} ${verdict}`);
    return parts.length === 0 ? NONE : parts.join(', ');
}
