import { setMaxListeners } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrate } from 'scanwire/postgres';
import type { Delivery } from 'scanwire/webhooks';
import { seeded } from '../support/seeded.ts';
import { type Deployment, deployment, ORDERED } from './deployment.ts';
import { type Fault, faultPlan, GONE, happen, type RecordedFault } from './faults.ts';
import { type Accepted, type Answer, type Arrival, journalLines, type Publication, TOGETHER, trueTime } from './journal.ts';
import { failuresOf, type Verdict, verdict } from './ledger.ts';
import { restored } from './operators.ts';

export interface CampaignOptions {
    readonly seed: number;
    /** How long faults happen. */
    readonly minutes: number;
    readonly events: number;
    /**
     * A compiled checkout of an earlier version. In place of faults every process of it is replaced by one of this version, one after
     * the other.
     */
    readonly upgradeFrom?: string | undefined;
    /** Calls it off; the campaign rejects then. */
    readonly signal?: AbortSignal;
    /** Told what happens, a line each. */
    readonly onProgress?: (line: string) => void;
}

/** A campaign that is over. */
export interface Campaign {
    readonly faults: readonly RecordedFault[];
    readonly verdict: Verdict;
    /** All that must not be, in words; empty when all is well. */
    readonly failures: readonly string[];
    /** Where logs and journals are when something failed, else null. */
    readonly folder: string | null;
}

const MINUTE = 60_000;

const NEVER = new AbortController().signal;

/** How long it may take after the last fault until every message is delivered; longer after a long campaign. */
const patienceOf = (minutes: number): number => Math.min(2 * MINUTE, 15_000 + 10_000 * minutes);

/** Milliseconds between two orders to publish. */
const PACE = 100;

/** Of ten orders to publish, so many are for a transaction of the host's own, for one that is rolled back, and for several events at once. */
const [COMMITTED, ROLLED_BACK, SEVERAL] = [0.2, 0.1, 0.1];

/** Publishes events and lets things fail, then waits until all is delivered, and judges. */
export async function campaign(options: CampaignOptions): Promise<Campaign> {
    // It stays when the campaign has failed: not where a run of tests has what it removes.
    const folder = mkdtempSync(join(process.platform === 'linux' ? '/tmp' : tmpdir(), 'scanwire-faults-'));
    const running = await deployment(folder, options.upgradeFrom);
    let kept = false;
    try {
        const done = await carriedOut(options, running, folder);
        kept = done.failures.length > 0;
        return { ...done, folder: kept ? folder : null };
    } finally {
        await running.close();
        if (!kept) {
            rmSync(folder, { recursive: true, force: true });
        }
    }
}

async function carriedOut(
    { seed, minutes, events, upgradeFrom, signal = NEVER, onProgress = () => {} }: CampaignOptions,
    running: Deployment,
    folder: string,
): Promise<Omit<Campaign, 'folder'>> {
    // Every fault waits for its time, and may be called off.
    setMaxListeners(0, signal);
    const duration = minutes * MINUTE;
    const patience = patienceOf(minutes);
    const plan = faultPlan({ seed, duration, patience, processes: running.members.map(({ name }) => name) });
    const startedAt = trueTime();
    const [published, ...happened] = await Promise.allSettled([
        publishAll(running, { seed, events, duration, startedAt, signal }),
        ...(upgradeFrom !== undefined
            ? [replaceAll(running, { duration, startedAt, signal, onProgress })]
            : plan.map(async (fault) => {
                  await sleep(startedAt + fault.at - trueTime(), undefined, { signal });
                  onProgress(described(fault));
                  return [await happen(fault, running, signal)];
              })),
    ]);
    fulfilled(published);
    const faults = happened.flatMap((each) => fulfilled(each) as readonly RecordedFault[]);
    onProgress(`${faults.length} faults are over, ${journalLines(running.files.accepted).length} events accepted`);

    const gone = new Set(faults.filter(({ kind }) => kind === GONE).map(({ target }) => target));
    const settled = await settledWithin(running, { patience, gone, signal });
    onProgress(settled ? 'Everything is delivered' : `Not everything was delivered within ${patience / 1000} s`);
    await running.endMembers();
    const deliveries = await allDeliveries(running);
    const judged = verdict({
        accepted: journalLines<Accepted>(running.files.accepted),
        received: journalLines<Arrival | Answer>(running.files.received),
        deliveries,
        faults,
        exporters: new Map([...running.exporters].map(([name, id]) => [id, name])),
        ordered: ORDERED,
        contentTypes: running.contentTypes,
    });
    write(folder, 'faults.json', faults);
    write(folder, 'exporters.json', await running.admin.webhooks.exporters.list());
    write(folder, 'examples.json', await examplesOf(judged, deliveries, running));
    const troubles = running.members.flatMap((each) => each.troubles);
    const accepted = journalLines(running.files.accepted).length;
    const missing = accepted < events ? [`Only ${accepted} of ${events} events were accepted`] : [];
    const found = leaks(folder, running.secrets).map((file) => `A secret or a header value is in ${file}`);
    return { faults, verdict: judged, failures: [...failuresOf(judged), ...missing, ...troubles, ...found] };
}

interface UpgradeOptions {
    readonly duration: number;
    readonly startedAt: number;
    readonly signal: AbortSignal;
    readonly onProgress: (line: string) => void;
}

/** Migrates, then replaces the processes one after the other, evenly over the time. None of it excuses a message that comes twice. */
async function replaceAll(
    { members, admin }: Deployment,
    { duration, startedAt, signal, onProgress }: UpgradeOptions,
): Promise<readonly RecordedFault[]> {
    const steps = [
        { kind: 'schema migrated', target: 'postgres', address: null, run: () => migrate(admin.pool) },
        ...members.map((each) => ({
            kind: 'process replaced',
            target: each.name,
            address: each.address(),
            async run() {
                await each.upgrade();
                while (!each.isReady()) {
                    await sleep(PACE, undefined, { signal });
                }
            },
        })),
    ];
    const done: RecordedFault[] = [];
    for (const [index, { run, ...step }] of steps.entries()) {
        await sleep(startedAt + ((index + 1) * duration) / (steps.length + 1) - trueTime(), undefined, { signal });
        const from = trueTime();
        await run();
        const until = trueTime();
        const fault = { ...step, at: Math.round(from - startedAt), duration: Math.round(until - from) };
        done.push({ ...fault, from, until, excuses: null });
        onProgress(described(fault));
    }
    return done;
}

function write(folder: string, name: string, content: unknown): void {
    writeFileSync(join(folder, name), JSON.stringify(content, null, 4));
}

/** Only once nothing goes on any more. @throws What the promise was rejected with. */
function fulfilled<T>(settled: PromiseSettledResult<T>): T {
    if (settled.status === 'rejected') {
        throw settled.reason;
    }
    return settled.value;
}

function described({ kind, target, at, duration }: Fault): string {
    const lasts = duration > 0 ? `, for ${(duration / 1000).toFixed(1)} s` : '';
    return `${(at / 1000).toFixed(1)} s: ${kind}, ${target}${lasts}`;
}

/** Open loop: what is due is published, however long what was published before takes. What a host that died never accepted is made up for. */
async function publishAll(
    { members, files }: Deployment,
    {
        seed,
        events,
        duration,
        startedAt,
        signal,
    }: { seed: number; events: number; duration: number; startedAt: number; signal: AbortSignal },
): Promise<void> {
    const random = seeded(seed + 1);
    const hosts = members.filter(({ role }) => role === 'host');
    let asked = 0;
    let turn = 0;

    const publish = (count: number): void => {
        const host = [...hosts.slice(turn % hosts.length), ...hosts].find((each) => each.isReady());
        turn += 1;
        if (host !== undefined && count > 0) {
            const publications = Array.from({ length: count }, () => publicationOf(random()));
            asked += publications.reduce((sum, publication) => sum + countOf(publication), 0);
            host.send({ publish: publications });
        }
    };

    for (let passed = 0; passed < duration; passed = trueTime() - startedAt) {
        publish(Math.floor((events * passed) / duration) - asked);
        await sleep(PACE, undefined, { signal });
    }

    for (let round = 0; round < MAKE_UP_ROUNDS && journalLines(files.accepted).length < events; round += 1) {
        publish(Math.ceil((events - journalLines(files.accepted).length) / (1 - ROLLED_BACK)));
        await sleep(MAKE_UP_PAUSE, undefined, { signal });
    }
}

const MAKE_UP_ROUNDS = 5;
const MAKE_UP_PAUSE = 1_000;

function publicationOf(number: number): Publication {
    if (number < ROLLED_BACK) {
        return 'rolled back';
    }
    const rest = number - ROLLED_BACK;
    return rest < COMMITTED ? 'committed' : rest < COMMITTED + SEVERAL ? 'together' : 'alone';
}

/** How many events come of it. */
function countOf(publication: Publication): number {
    return publication === 'rolled back' ? 0 : publication === 'together' ? TOGETHER : 1;
}

interface SettlingOptions {
    readonly patience: number;
    /** Names of exporters that a 410 may have stopped, even after it was over: its outcome may have come late. */
    readonly gone: ReadonlySet<string>;
    readonly signal: AbortSignal;
}

async function settledWithin(running: Deployment, { patience, gone, signal }: SettlingOptions): Promise<boolean> {
    const { webhooks } = running.admin;
    const giveUp = trueTime() + patience;
    for (;;) {
        const done = await Promise.all([...gone].map((name) => restored(running, name)));
        const unfinished = await Promise.all(
            (['pending', 'queued', 'sending'] as const).map((state) => webhooks.deliveries.list({ state, limit: 1 })),
        );
        if (unfinished.flat().length === 0 && done.every(Boolean)) {
            return true;
        }
        if (trueTime() > giveUp) {
            return false;
        }
        await sleep(500, undefined, { signal });
    }
}

async function allDeliveries({ admin: { webhooks } }: Pick<Deployment, 'admin'>): Promise<readonly Delivery[]> {
    const all: Delivery[] = [];
    for (;;) {
        const after = all.at(-1)?.id;
        const page = await webhooks.deliveries.list({ limit: 1000, ...(after !== undefined && { after }) });
        all.push(...page);
        if (page.length < 1000) {
            return all.filter(({ kind }) => kind !== 'test');
        }
    }
}

/** The files of a folder that hold one of the secrets: logs, what Redis and PostgreSQL have written, answers. */
export function leaks(folder: string, secrets: readonly string[]): string[] {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((file) => {
            const bytes = readFileSync(file);
            return secrets.some((secret) => bytes.includes(secret));
        });
}

/** How many of each sort are written down in full. */
const EXAMPLES = 20;

/** What was lost, or came twice without a cause, with all attempts as the store has them. */
async function examplesOf(
    { lost, duplicates }: Verdict,
    deliveries: readonly Delivery[],
    { admin, exporters }: Deployment,
): Promise<object> {
    const history = async (eventId: string, exporter: string): Promise<unknown> => {
        const row = deliveries.find((each) => each.eventId === eventId && each.exporterId === exporters.get(exporter));
        return row === undefined ? null : await admin.webhooks.deliveries.show(row.id);
    };
    const uncaused = duplicates.filter(({ cause }) => cause === null).slice(0, EXAMPLES);
    return {
        lost: await Promise.all(
            lost.slice(0, EXAMPLES).map(async (loss) => ({ ...loss, history: await history(loss.eventId, loss.exporter) })),
        ),
        duplicates: await Promise.all(
            uncaused.map(async (each) => ({ ...each, history: await history(each.post.messageId, each.post.exporter) })),
        ),
    };
}
