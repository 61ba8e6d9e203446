import t from 'tap';
import type { DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { Message } from '../../lib/webhooks/sending/http-sender.ts';
import { DispatchLedger } from './dispatch-ledger.ts';
import { ExporterModel } from './exporter-model.ts';
import { Ledger } from './ledger.ts';
import { type SimulatedProcess, VARIANTS } from './simulated-process.ts';
import { START, Timeline } from './timeline.ts';
import { WireLedger } from './wire-ledger.ts';

const ROW = { id: 'delivery', eventId: 'event', exporterId: 'exporter', state: 'pending' };
const MESSAGE = {
    exporterId: 'exporter',
    headers: [['webhook-id', 'event']],
    body: Buffer.from('{}'),
    url: 'http://a/',
} as unknown as Message;
const RESERVATION = { token: 'token', beginBy: START + 1_000, generation: 0, attemptSinceReplay: 1, settings: 1 };
const STORE = { list: async () => [ROW] } as unknown as DeliveryStore;

/** A process that has joined the first generation of the settings, and an event that is accepted for one exporter. */
async function deployment() {
    const process = { name: 'a1', alive: true, variant: VARIANTS[0], frozenUntil: 0 } as unknown as SimulatedProcess;
    const ledger = new Ledger(new Timeline(), new Map([['a1', process]]), new Map(), null);
    const exporter = new ExporterModel({ url: 'http://a/', collector: 'default', schedule: [], header: null }, 'a secret', false);
    ledger.exporters.set('exporter', exporter);
    const declare = (generation: number): void => {
        ledger.sessions.declared({ id: '', generation, settings: { vendor: VARIANTS[generation - 1]?.vendor } as never });
    };
    declare(1);
    ledger.sessions.signed({ id: 'session', process: JSON.stringify({ name: 'a1' }), slots: {}, generation: 1 }, 7_500);
    await ledger.accepted([{ event: { id: 'event', kind: 'a_kind', body: '{}' }, recipients: {} } as never], STORE);
    return {
        ledger,
        exporter,
        declare,
        handOut: () => new DispatchLedger(ledger).handedOut([{ ...ROW, deliveryId: 'delivery', reservation: RESERVATION } as never]),
        begin: (): readonly string[] => {
            new WireLedger(ledger).begun(process, MESSAGE);
            return ledger.violations;
        },
    };
}

t.test('what was handed out before the settings changed may begin with those of before', async (t) => {
    const { handOut, declare, begin } = await deployment();
    handOut();
    declare(2);
    t.strictSame(begin(), [], 'in the same millisecond, too');
});

t.test('what was handed out after the settings changed may not begin with those of before', async (t) => {
    const { handOut, declare, begin } = await deployment();
    declare(2);
    handOut();
    t.match(begin(), ['very is claimed by a1 with settings of another generation']);
});

t.test('what was handed out may begin until somebody was told that its exporter is stopped', async (t) => {
    const { handOut, exporter, begin } = await deployment();
    handOut();
    exporter.stop();
    t.strictSame(begin(), []);

    await exporter.asked(async () => exporter.stop());
    handOut();
    t.match(begin(), ['very begins although its exporter is stopped or removed, which somebody was told of']);
});

t.test('or removed', async (t) => {
    const { handOut, exporter, begin } = await deployment();
    handOut();
    await exporter.asked(async () => {
        exporter.removed = true;
    });
    t.match(begin(), ['very begins although its exporter is stopped or removed, which somebody was told of']);
});

t.test('an event is promised when it and its deliveries are there', async (t) => {
    const { ledger } = await deployment();
    ledger.promise({ eventId: 'event', deliveries: ['delivery'] });
    t.strictSame(ledger.violations, []);
    ledger.promise({ eventId: 'other', deliveries: [] });
    ledger.promise({ eventId: 'event', deliveries: ['next'] });
    t.strictSame(ledger.violations, ['event ther is promised before it is stored', 'event vent is promised before it is stored']);
});

t.test('settings of an exporter are used until somebody was told that they are others', async (t) => {
    const { exporter } = await deployment();
    const first = exporter.settings;
    await exporter.asked(async () => {
        exporter.change({ ...first, url: 'http://b/' }, 'a secret', 0);
        t.strictSame(exporter.settingsSince(first), [exporter.settings, first], 'not before');
    });
    t.strictSame(exporter.settingsSince(first), [exporter.settings]);
});

t.test('of two changes of an exporter at once the first answer says nothing about the second', async (t) => {
    const { exporter } = await deployment();
    const first = exporter.settings;
    const change = (path: string): void => exporter.change({ ...first, url: `http://a/${path}` }, 'a secret', 0);
    let answer = (): void => undefined;
    const second = exporter.asked(
        () =>
            new Promise<void>((resolve) => {
                answer = resolve;
            }),
    );
    await exporter.asked(async () => change('b'));
    change('c');
    t.equal(exporter.settingsSince(first).length, 3);

    answer();
    await second;
    t.equal(exporter.settingsSince(first).length, 3, 'what was replaced meanwhile may be of another that goes on');
    await exporter.asked(async () => undefined);
    t.equal(exporter.settingsSince(first).length, 1);
});

t.test('a change that is refused says nothing', async (t) => {
    const { exporter } = await deployment();
    const first = exporter.settings;
    const refused = exporter.asked(async () => {
        exporter.change({ ...first, url: 'http://b/' }, 'a secret', 0);
        throw new Error('The answer was lost');
    });
    await t.rejects(refused, { message: 'The answer was lost' });
    t.equal(exporter.settingsSince(first).length, 2);
});
