import Joi from 'joi';
import t from 'tap';
import { type EventKind, eventKinds, investigationCreated, testEvent, typesFor } from '../../../../lib/webhooks/events/event-kinds.ts';

t.test('opens the event table to the host', async (t) => {
    const own: EventKind = { name: 'scan.finished', schema: Joi.object() };
    t.strictSame(
        [...eventKinds([own]).keys()],
        [...['test', 'idr_investigation_created', 'exporter_failing', 'exporter_stopped', 'exporter_recovered'], 'scan.finished'],
    );
    t.throws(() => eventKinds([own, own]), { code: 'MISCONFIGURED', field: 'kinds[1].name' });
    t.throws(() => eventKinds([{ ...own, name: 'a b' }]), { code: 'MISCONFIGURED' });
    t.throws(() => eventKinds([{ ...own, name: 'test' }]), { code: 'MISCONFIGURED' });
    t.throws(() => eventKinds([{ ...own, name: 'exporter_failing' }]), { code: 'MISCONFIGURED', message: /exists already$/ });
    t.ok(eventKinds([{ ...own, name: 'exporter' }]).has('exporter'));
    const rule = 'must not begin with exporter_: only scanwire publishes such kinds, which tell about exporters';
    t.throws(() => eventKinds([own, { ...own, name: 'exporter_added' }]), {
        code: 'MISCONFIGURED',
        field: 'kinds[1].name',
        message: `webhooks options: kinds[1].name ${rule}`,
    });
});

t.test('sends library investigations to all types but the legacy one', async (t) => {
    t.strictSame(typesFor(investigationCreated, 'library'), ['investigation', 'investigation_legacy_and_library']);
    t.equal(typesFor(investigationCreated, 'legacy').length, 3);
    t.equal(typesFor(investigationCreated, null).length, 3);
    t.equal(typesFor(testEvent, null).length, 3);
});
