import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { SIGNATURE_FORMS } from '../../../lib/webhooks/setting-values.ts';

interface Case {
    readonly form: string;
    readonly what: string;
    readonly verified: boolean;
    /** The lengths in bytes that were compared in constant time. */
    readonly compared: readonly number[];
}

const SECRETS = 3;
/** Whatever is compared. */
const LENGTH = 76;
const COUNTS: Readonly<Record<string, number>> = { one: 1, two: 2, three: 3 };

const output = execFileSync(process.execPath, [join(import.meta.dirname, 'compared-signatures.js')], { encoding: 'utf8' });
const cases = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Case);

t.test('compares as much of a wrong signature as of a right one, with each secret, in every form', async (t) => {
    t.strictSame([...new Set(cases.map(({ form }) => form))].toSorted(), [...SIGNATURE_FORMS].toSorted());
    for (const { form, what, verified, compared } of cases) {
        const signatures = COUNTS[/three|two/.exec(what)?.[0] ?? 'one'] as number;
        t.equal(verified, what.includes('right'), `${form}: ${what}`);
        t.strictSame(compared, Array(SECRETS * signatures).fill(LENGTH), `${form}: ${what}`);
    }
});

t.test('compares nothing else where it has what was signed with, but what anybody may know', async (t) => {
    const source = readFileSync(join(import.meta.dirname, '..', '..', '..', '..', 'lib', 'verify', 'verify.ts'), 'utf8');
    // Those that have digests, in the order in which they stand there.
    const functions = [...source.matchAll(/^function (?:verifyBody|verifyStandard|isAnyOf|comparable)\([\s\S]*?^\}$/gm)].map(
        ([text]) => text,
    );
    t.equal(functions.length, 4);
    const others = functions.reduce((rest, text) => rest.replace(text, ''), source);
    t.notMatch(others, /(?:bodyDigest|standardSignatures|timingSafeEqual)\(/);
    const comparisons = functions.flatMap((text) => [
        ...text.matchAll(/\S+(?: [!=]={1,2} \S+|\.(?:test|includes|indexOf|has|equals|compare|localeCompare|startsWith)\(\w*\))/g),
    ]);
    t.strictSame(
        comparisons.map(([text]) => text),
        [
            '(unfit[0] !== undefined)',
            "(id === '')",
            '(BEGINS_AS_JSON.test(id)',
            '(!SECONDS.test(seconds)',
            '(replays !== undefined)',
            'equal.includes(true)',
        ],
    );
});
