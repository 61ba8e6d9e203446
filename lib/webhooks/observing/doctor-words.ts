/** The words of a finding of the doctor. `%` stands for a value that is filled in. */
export interface FindingWords {
    /** One sentence, without its full stop. */
    readonly text: string;
    /** What to do about it, with `%` for the same values; null where nothing is to be done. */
    readonly advice: string | null;
    /** For a text whose `%` stands for a list: the words for each item. Items are joined with commas. */
    readonly each?: string;
}

/** What was found, for programs and for other languages. */
export type FindingCode =
    | 'store_answers'
    | 'store_unusable'
    | 'clock_ahead'
    | 'clock_behind'
    | 'clock_far_ahead'
    | 'clock_far_behind'
    | 'keys_open'
    | 'keys_missing'
    | 'api_keys_none'
    | 'api_keys_counted'
    | 'api_keys_expired'
    | 'api_keys_unknown'
    | 'queue_works'
    | 'queue_works_in'
    | 'queue_unusable'
    | 'nobody_sends'
    | 'nobody_sends_for'
    | 'sent_for'
    | 'names_none'
    | 'name_servers_answer'
    | 'name_servers_silent'
    | 'names_known'
    | 'names_all_unknown'
    | 'names_unknown'
    | 'none_stopped'
    | 'some_stopped'
    | 'some_unusable'
    | 'disk_free'
    | 'disk_full';

/** The words of each finding that needs no receiver. The admin console says the same in its languages. */
export const FINDING_WORDS: { readonly [Code in FindingCode]: FindingWords } = {
    store_answers: words('% answers'),
    store_unusable: words(
        '% cannot be used: %',
        'Start the database, or correct where it is looked for; nothing else can be looked at before',
    ),
    clock_ahead: words('The clock of this process is % s ahead of that of the store'),
    clock_behind: words('The clock of this process is % s behind that of the store'),
    clock_far_ahead: words(
        'The clock of this process is % s ahead of that of the store',
        'Let both machines take their time from NTP: this process checks certificates, and dates its log, by its own clock',
    ),
    clock_far_behind: words(
        'The clock of this process is % s behind that of the store',
        'Let both machines take their time from NTP: this process checks certificates, and dates its log, by its own clock',
    ),
    keys_open: words('The key ring opens what is sealed for exporters'),
    keys_missing: words('%', 'Start with the key ring that sealed it; a key that is replaced stays in the ring beside the new one'),
    api_keys_none: words('There is no API key that can be used'),
    api_keys_counted: words('API keys that can be used: %; that have expired: %'),
    api_keys_expired: words(
        'No API key can be used; that have expired: %',
        'Make another with scanwire keys create, or revoke those that are not needed any more',
    ),
    api_keys_unknown: words(
        'API keys cannot be looked up: %',
        'Start the database that they are in: until then no request with a key is answered',
    ),
    queue_works: words('The queue has taken what it was given last'),
    queue_works_in: words('The queue in % has taken what it was given last'),
    queue_unusable: words('%', 'Start its server, or correct where it is looked for; what was accepted waits in the store meanwhile'),
    nobody_sends: words('No process sends', 'Start a server that sends, or scanwire worker'),
    nobody_sends_for: words(
        'No process sends for the collector %, whose exporters run',
        'Start scanwire worker --collector %, or give those exporters another collector',
    ),
    sent_for: words('Collectors that are sent for: %', null, '% (processes: %, attempts at once: %)'),
    names_none: words('No receiver has a name to look up'),
    name_servers_answer: words('No receiver has a name to look up; name servers answer'),
    name_servers_silent: words(
        'No receiver has a name to look up; no name server has answered',
        'Nothing is wrong with that; before a receiver gets a name, look at the name servers of this machine, in /etc/resolv.conf',
    ),
    names_known: words('Names of receivers that are known: %'),
    names_all_unknown: words(
        'No addresses for %',
        'Look at the name servers of this machine, in /etc/resolv.conf; if those answer, at the names',
    ),
    names_unknown: words('No addresses for %', 'Correct the URLs of their exporters, or ask who runs these domains'),
    none_stopped: words('No exporter was stopped by its receiver'),
    some_stopped: words(
        'Stopped by what their receivers did: %',
        'Look at each with its id, mend its receiver and start it again',
        '% (%)',
    ),
    some_unusable: words('Kinds or filter cannot be used, so that no events come: %', 'Set kinds and filter of each anew', '%'),
    disk_free: words('% GiB are free at %'),
    disk_full: words('% GiB are free at %', 'Make room: without any nothing is accepted any more'),
};

/** What a finding says with its values. @param values In the order of the `%`. For a list, the values of all items, one item after the other. */
export function filledFinding({ text, advice, each }: FindingWords, values: readonly string[]): Omit<FindingWords, 'each'> {
    const said = each === undefined ? values : [listed(each, values)];
    return { text: filled(text, said), advice: advice === null ? null : filled(advice, said) };
}

function listed(each: string, values: readonly string[]): string {
    const size = each.split('%').length - 1;
    const groups = Array.from({ length: Math.ceil(values.length / size) }, (_, index) => values.slice(index * size, (index + 1) * size));
    return groups.map((group) => filled(each, group)).join(', ');
}

/** A text with a value in place of each `%`, in their order; `%2` stands for the second value. A value may contain `%` itself. */
export function filled(text: string, values: readonly string[]): string {
    let index = 0;
    return text.replace(/%([1-9])?/g, (_, number: string | undefined) => values[number === undefined ? index++ : Number(number) - 1] ?? '');
}

function words(text: string, advice: string | null = null, each?: string): FindingWords {
    return { text, advice, ...(each !== undefined && { each }) };
}
