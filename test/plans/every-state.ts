import t from 'tap';
import { type Analysed, examination, type Finding, statesOf } from './examination.ts';
import { quietServer } from './quiet-server.ts';

/** `npm run plans` does the same with a million, 300,000 of them just sent. */
const [MOST, SENT] = [30_000, 3_000];

/** Tests the statements of a delivery's way in tables of every size; of each kind of analysis in a file of its own, since it takes its time. */
export function testEveryState(analysed: Analysed): void {
    t.test(`no statement costs more for what is kept, analysed ${analysed}`, async (t) => {
        const tables = await examination(analysed, await quietServer(t));
        t.teardown(() => tables.end());
        for (const state of statesOf(MOST, SENT)) {
            t.strictSame(problems(await tables.findings(state)), [], state.name);
        }
    });
}

function problems(findings: readonly Finding[]): readonly string[] {
    return findings.flatMap(({ where, statement, problems }) => problems.map((problem) => `${where}: ${statement}: ${problem}`));
}
