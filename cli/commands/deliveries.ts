import type { Command } from 'commander';
import type { AskedFilter, DeliveryMessage } from '../../lib/webhooks/deliveries/deliveries.ts';
import { DELIVERY_STATES } from '../../lib/webhooks/deliveries/delivery-states.ts';
import type { Delivery } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { Replay } from '../../lib/webhooks/deliveries/replays.ts';
import type { AttemptView } from '../../plugins/admin-console/operations.ts';
import { type Answer, type Call, command, definedFields } from '../command.ts';
import { moment, perSecond, wholeNumber } from '../option-values.ts';
import { WrongUsage } from '../output/errors.ts';
import { aligned, countText, relativeTime, table, utcTime } from '../output/table.ts';
import { timesText } from '../output/test-result.ts';

export function define(deliveries: Command): void {
    const list = command(deliveries, 'list', 'list deliveries, newest first', async ({ options, perform }) => {
        const filter = filterOf(options);
        if (options.count === true) {
            const counted = await perform('countDeliveries', filter);
            return { json: counted, text: () => countText(counted) };
        }
        const found = await perform('listDeliveries', { ...filter, limit: Number(options.limit) });
        return { json: found, text: () => deliveriesTable(found) };
    });
    withFilter(list, { of: '', began: 'accepted', outcome: 'whose last attempt came to this', after: 'delivery' });

    command(deliveries, 'show <id>', 'show a delivery with its attempts', async ({ args: [id = ''], options, perform }) => {
        const delivery = await perform('showDelivery', { id });
        const message = options.message === true ? await perform('showMessage', { id }) : null;
        return {
            json: message === null ? delivery : { ...delivery, message },
            text: async () => {
                const parts = [
                    await deliveryFacts(delivery),
                    await attemptsTable(delivery.history),
                    ...delivery.history.flatMap(answerText),
                ];
                return [...parts, ...(message === null ? [] : [messageText(message)])].join('\n\n');
            },
        };
    }).option('--message', 'with what it sends: headers, their secrets masked, and body');

    command(deliveries, 'replay [id]', 'send once more, or now: a delivery, or all that failed', replayed)
        .option('--exporter <id>', 'what this exporter was sent in vain, or was not sent')
        .option('--failed-since <when>', 'since then: 12h or 7d ago, or a time such as 2027-01-31T00:00Z', moment(-1))
        .option('--held', 'all that was held for it while an outcome had stopped it')
        .option('--rate <n/s>', 'so many a second (default: 100/s)', perSecond)
        .option('--dry-run', 'only say how many that would be')
        .option('--cancel <id>', 'end this replay');

    command(deliveries, 'discard <id>', 'end for good what waits, is held or has failed', async ({ args: [id = ''], perform }) => {
        const delivery = await perform('discardDelivery', { id });
        return { json: delivery, text: () => `Discarded ${delivery.id}: ${delivery.state}` };
    });

    command(deliveries, 'replays [id]', 'list replays and how far they are, or show one', async ({ args: [id], perform }) => {
        if (id !== undefined) {
            const replay = await perform('showReplay', { id });
            return { json: replay, text: () => replayFacts(replay) };
        }
        const all = await perform('listReplays', {});
        return { json: all, text: () => replaysTable(all) };
    });
}

/** Words for what is listed. */
interface FilterWords {
    /** What comes before the delivery. */
    readonly of: string;
    readonly began: string;
    readonly outcome: string;
    readonly after: string;
}

/** The options of a list: the same of deliveries and of their attempts. */
export function withFilter(list: Command, { of, began, outcome, after }: FilterWords): void {
    list.addOption(list.createOption('--state <state>', `only those ${of}in this state`).choices(DELIVERY_STATES))
        .option('--exporter <id>', 'only those to this exporter')
        .option('--kind <kind>', 'only those of events of this kind')
        .option('--event <id>', 'only those of this event')
        .option('--since <when>', `only those ${began} from then on: 12h or 7d ago, or a time such as 2027-01-31T00:00Z`, moment(-1))
        .option('--until <when>', `only those ${began} before`, moment(-1))
        .option('--outcome <code>', `only those ${outcome}`)
        .option('--after <id>', `continue below this ${after}`)
        .option('--limit <n>', 'at most so many', wholeNumber(1, 1000), 100)
        .option('--count', 'only how many there are; `10,000+` where they were not all counted');
}

/** What the options of {@link withFilter} ask for. */
export function filterOf({
    state,
    exporter: exporterId,
    kind,
    event: eventId,
    since,
    until,
    outcome,
    after,
}: Call['options']): AskedFilter {
    return definedFields<AskedFilter>({ state, exporterId, kind, eventId, since, until, outcome, after });
}

async function replayed({ args: [id], options, perform }: Call): Promise<Answer> {
    if (id !== undefined) {
        assertAlone('the id of a delivery', ['cancel', ...OF_MANY], options);
        const delivery = await perform('replayDelivery', { id });
        return { json: delivery, text: () => `Replaying ${delivery.id}: ${delivery.state}` };
    }
    const { exporter, failedSince, held, rate, dryRun, cancel } = options;
    if (cancel !== undefined) {
        assertAlone('--cancel', OF_MANY, options);
        const replay = await perform('cancelReplay', { id: String(cancel) });
        return { json: replay, text: () => replaysTable([replay]) };
    }
    if (exporter === undefined || (failedSince === undefined) === (held === undefined)) {
        const message = 'Replay needs one of: the id of a delivery, --exporter with --failed-since or --held, --cancel';
        throw new WrongUsage(message);
    }

    const selection = definedFields<{ failedSince: Date; held: true; rate: number }>({ failedSince, held, rate });
    const answer = await perform('beginReplay', { exporterId: String(exporter), ...selection, dryRun: dryRun === true });
    return {
        json: answer,
        text: () => ('id' in answer ? replaysTable([answer]) : `Would replay ${answer.total.toLocaleString('en')}`),
    };
}

/** The options of a replay of many deliveries. */
const OF_MANY = ['exporter', 'failedSince', 'held', 'rate', 'dryRun'] as const;

/** One that is not heeded would have a delivery sent where somebody only wanted a count. @throws WrongUsage that names it. */
function assertAlone(way: string, others: readonly string[], options: Call['options']): void {
    const given = others.find((name) => options[name] !== undefined);
    if (given !== undefined) {
        const field = given.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
        throw new WrongUsage(`--${field} does not go with ${way}`, field);
    }
}

const selectionText = ({ failedSince }: Replay): string => (failedSince === null ? 'held' : `failed since ${utcTime(failedSince)}`);

const doneText = ({ done, total }: Replay): string => `${done.toLocaleString('en')} of ${total.toLocaleString('en')}`;

function replayFacts(replay: Replay): Promise<string> {
    const { id, exporterId, rate, state, createdAt, finishedAt } = replay;
    const now = new Date();
    return aligned([
        ['Id', id],
        ['Exporter', exporterId],
        ['Of', selectionText(replay)],
        ['Rate', `${rate}/s`],
        ['Done', doneText(replay)],
        ['State', state],
        ['Begun', relativeTime(createdAt, now)],
        ...(finishedAt === null ? [] : [['Finished', relativeTime(finishedAt, now)]]),
    ]);
}

function replaysTable(replays: readonly Replay[]): Promise<string> {
    return table(
        ['ID', 'EXPORTER', 'OF', 'RATE', 'DONE', 'STATE', 'BEGUN'],
        replays.map((replay) => [
            replay.id,
            replay.exporterId,
            selectionText(replay),
            `${replay.rate}/s`,
            doneText(replay),
            replay.state,
            relativeTime(replay.createdAt, new Date()),
        ]),
        'No replays.',
    );
}

function deliveriesTable(deliveries: readonly Delivery[]): Promise<string> {
    return table(
        ['ID', 'KIND', 'EXPORTER', 'STATE', 'ATTEMPTS', 'LAST', 'CREATED'],
        deliveries.map(({ id, kind, exporterId, state, attempts, lastCode, createdAt }) => [
            id,
            kind,
            exporterId,
            state,
            String(attempts),
            lastCode ?? '',
            relativeTime(createdAt, new Date()),
        ]),
        'No deliveries.',
    );
}

function deliveryFacts(delivery: Delivery): Promise<string> {
    const { dueAt, finishedAt } = delivery;
    const now = new Date();
    return aligned([
        ['Id', delivery.id],
        ['Event', `${delivery.eventId} (${delivery.kind})`],
        ['Exporter', `${delivery.exporterId} on ${delivery.collector}`],
        ['State', delivery.state],
        ['Created', relativeTime(delivery.createdAt, now)],
        finishedAt === null ? ['Due', relativeTime(dueAt, now)] : ['Finished', relativeTime(finishedAt, now)],
    ]);
}

function messageText({ headers, body, bytes, erasedAt, failure }: DeliveryMessage): string {
    if (body === null) {
        return erasedAt === null ? `Nothing is sent: ${failure}` : `Its body was erased at ${utcTime(erasedAt)}`;
    }
    const lines = headers === null ? ['Its exporter was removed'] : headers.map(([name, value]) => `${name}: ${value}`);
    return [...lines, '', body, '', `${bytes} bytes`].join('\n');
}

/** What the receiver answered to an attempt, line by line as it came. */
function answerText({ number, responseBody }: AttemptView): readonly string[] {
    if (responseBody === null) {
        return [];
    }
    const { text, bytes, truncated } = responseBody;
    const count = `${bytes.toLocaleString('en')} bytes`;
    const said = text === null ? `  ${count} that are no text` : text.replaceAll(/^/gm, '  ');
    const rest = text === null || !truncated ? '' : `\n  … (${count} were read)`;
    return [`The receiver answered to attempt ${number}:\n${said}${rest}`];
}

function attemptsTable(attempts: readonly AttemptView[]): Promise<string> {
    return table(
        ['ATTEMPT', 'STARTED', 'STATUS', 'OUTCOME', 'TOOK', 'DETAIL'],
        attempts.map((attempt) => [String(attempt.number), relativeTime(attempt.startedAt, new Date()), ...endCells(attempt)]),
        'No attempts yet.',
    );
}

/** What an attempt came to, in the columns STATUS, OUTCOME, TOOK and DETAIL. */
export function endCells({
    status,
    code,
    timings,
    detail,
}: Pick<AttemptView, 'status' | 'code' | 'timings' | 'detail'>): readonly string[] {
    const took = timings === null ? '' : timesText(timings).replace(/^in /, '');
    return [String(status ?? ''), code ?? 'under way', took, detail ?? ''];
}
