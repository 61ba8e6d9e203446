import { checked } from '../../schema-validation.ts';
import { eventBody } from '../events/event-body.ts';
import { isNoticeKind, testEvent } from '../events/event-kinds.ts';
import { type Choice, choiceOf, formatInput, type UnroutedEvent } from '../events/event-routing.ts';
import { isSubscribable, kindAmong } from '../events/subscription.ts';
import type { PublishOptions } from '../events/unrouted-event.ts';
import { type FormatEvent, lackingFormat, UnknownFormat } from '../formats/format.ts';
import { maskedBody, maskedMessage, messageMaker, UnmakeableMessage } from '../messages/formatted-message.ts';
import type { HeaderPairs } from '../messages/message-headers.ts';
import { checkSecret, generateSecret } from '../messages/signing-secret.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { type NewExporterSettings, newExporterSchema, type StoredExporter } from './exporter.ts';
import { type ExporterChanges, exporterChangesSchema, exporterToStore, patchOf } from './exporter-patch.ts';
import { testBody } from './test-event.ts';

/** Answers what an exporter would do with an event that is not published: whether it would get it, and what would be sent. */
export interface ExporterQuestions {
    /**
     * Whether it gets an event, and if not, why not. Kinds that tell about exporters may be asked about as well, but not a `test`, which goes to the
     * one that it tests.
     *
     * @throws ScanwireError `INVALID_INPUT` as `publish`.
     */
    explain(id: string, kind: string, body: unknown, options?: ExplainOptions): Promise<Choice>;
    /**
     * What would be sent of an event now, with secrets masked; of a `test` too, whose body is made where none is given.
     *
     * @throws ScanwireError `INVALID_INPUT` as `publish`, or for a template that fails.
     */
    preview(id: string, kind: string, body?: unknown): Promise<MessagePreview>;
    /**
     * Answers both for an exporter that would run with settings that are not saved. Nothing is stored.
     *
     * @throws ScanwireError `INVALID_INPUT` as `create`, `update` and `publish`, `CONFLICT` as `update`.
     */
    previewDraft(draft: ExporterDraft, kind: string, body: unknown): Promise<DraftPreview>;
}

/** What is said of an event besides its body. */
export type ExplainOptions = Pick<PublishOptions, 'rules' | 'owner'>;

/** Settings that decide which events an exporter gets, and what is sent of them; `type`, `legacy` and `owner` of {@link ExporterDraft} do so, too. */
export const DRAFTED = ['name', 'kinds', 'filter', 'format', 'template', 'formatSecret', 'headers', 'secret', 'signatures'] as const;

/** Settings that are not saved. */
export interface ExporterDraft
    extends Pick<ExporterChanges, 'type' | (typeof DRAFTED)[number]>,
        Pick<NewExporterSettings, 'legacy' | 'owner'> {
    /** The exporter that they would change; a new one when absent. */
    readonly id?: string;
}

/** What would become of an event: whether it is wanted, and if not, why not; and the message. */
export type DraftPreview = Choice & MessagePreview;

/** Stands for the receiver: what is sent does not depend on it. */
const NOWHERE = 'https://example.com/';

/** The id of what would be a new exporter. One for all, since a key ring remembers what it has sealed for. */
const DRAFT = '00000000-0000-0000-0000-000000000000';

/** What can be asked about the exporters of a store. */
export function exporterQuestions(stored: (id: string) => Promise<StoredExporter>, context: WebhooksContext): ExporterQuestions {
    function unpublished(
        kindName: string,
        body: unknown,
        { admits = isSubscribable, ...about }: Pick<UnroutedEvent, 'rules' | 'owner'> & { readonly admits?: typeof isSubscribable },
    ): UnroutedEvent {
        const kind = kindAmong(context.kinds, kindName, admits);
        const text = eventBody(kind, body, context.maxBodyBytes);
        return { id: context.newId(), kind, body: text, ...about, ...(isNoticeKind(kind.name) && noticed(text, about)) };
    }

    async function drafted({ id, legacy, owner, type, ...changes }: ExporterDraft): Promise<StoredExporter> {
        if (id !== undefined) {
            const before = await stored(id);
            const valid = checked(
                exporterChangesSchema.min(0),
                { ...changes, ...(type !== undefined && { type }), ...(owner !== undefined && { owner }) },
                { subject: 'Exporter' },
            );
            return { ...before, ...(await patchOf(before, valid, context)) };
        }
        const given = { ...changes, url: NOWHERE, ...(legacy !== undefined && { legacy }), ...(owner !== undefined && { owner }) };
        const made = checked(newExporterSchema, given, { subject: 'Exporter' });
        return await exporterToStore(made, checkSecret(made.secret ?? generateSecret()), { ...context, newId: () => DRAFT });
    }

    return {
        async explain(id, kindName, body, { rules = null, owner = null } = {}) {
            const exporter = await stored(id);
            return choiceOf(exporter, unpublished(kindName, body, { rules, owner }));
        },

        async preview(id, kindName, body) {
            const [exporter, now] = [await stored(id), await context.deliveries.now()];
            const asked = body === undefined && kindName === testEvent.name ? testBody(exporter, now) : body;
            const event = unpublished(kindName, asked, { rules: null, owner: null, admits: () => true });
            return previewOf(formatInput(event, now), exporter, context);
        },

        async previewDraft(draft, kindName, body) {
            const exporter: StoredExporter = { ...(await drafted(draft)), state: 'running', stopReason: null };
            // The owner of a notice is in its body.
            const event = unpublished(kindName, body, { rules: null, owner: isNoticeKind(kindName) ? null : exporter.owner });
            const message = previewOf(formatInput(event, await context.deliveries.now()), exporter, context);
            return { ...choiceOf(exporter, event), ...message };
        },
    };
}

/** The exporter that a notice is about, and the owner of that exporter unless the caller names one. @param body Body of such an event, checked. */
function noticed(body: string, { owner }: Pick<UnroutedEvent, 'owner'>): Pick<UnroutedEvent, 'about' | 'owner'> {
    const { exporterId, owner: its = null } = JSON.parse(body) as { readonly exporterId: string; readonly owner?: string };
    return { about: exporterId, owner: owner ?? its };
}

/** A message as it would go out. */
export interface MessagePreview {
    /** In order, with what is secret masked; those of the connection are not among them. */
    readonly headers: HeaderPairs;
    readonly body: string;
}

/** A message as it would go out now, with what is secret masked. @throws ScanwireError `INVALID_INPUT` when it cannot be made. */
function previewOf(event: FormatEvent, exporter: StoredExporter, context: WebhooksContext): MessagePreview {
    const message = messageMaker(exporter, context)(event);
    const failure = message?.failure ?? null;
    if (failure !== null) {
        const { format } = exporter;
        throw context.formats.has(format) ? new UnmakeableMessage(failure, 'format') : new UnknownFormat(lackingFormat(format));
    }

    const { headers } = maskedMessage(
        { ...event, body: event.text, createdAt: event.time },
        message,
        { exporter, time: event.time },
        context,
    );
    return { headers, body: maskedBody(event.text, message) };
}
