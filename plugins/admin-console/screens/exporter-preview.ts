import { ScanwireError } from '../../../lib/errors.ts';
import type { Exporter } from '../../../lib/webhooks/exporters/exporter.ts';
import { DRAFTED } from '../../../lib/webhooks/exporters/exporter-preview.ts';
import type { Output } from '../operations.ts';
import { indented } from './delivery.ts';
import { changedOwner, type ExporterValues, headersIn, newSettings } from './exporter-form.ts';
import { errorText, FormFault } from './languages.ts';
import type { Templates } from './renderer.ts';
import type { Visit } from './screen.ts';

/**
 * What would be sent of an event with what the form holds. The whole form is sent for it; with scripts whenever something above it is typed, and
 * only this part of the answer is shown.
 */
const PREVIEW = `<fieldset class="preview"><legend>{{ t.exporters.preview.title }}</legend>
<p><small>{{ t.exporters.preview.hint }}</small></p>
<div id="preview" aria-live="polite">{% if preview.fault %}<p class="fault">{{ preview.fault }}</p>{% elsif preview.message %}
<p><strong>{% if preview.message.wanted %}{{ t.exporters.preview.wanted }}{% else %}{{ t.exporters.preview.unwanted }} {{ t.said.unwanted | fill: preview.message.reason }}.{% endif %}</strong></p>
{% if preview.message.wanted %}<dl class="headers">{% for header in preview.message.headers %}<dt>{{ header[0] }}</dt><dd><code>{{ header[1] }}</code></dd>{% endfor %}</dl>
<pre tabindex="0" aria-label="{{ t.deliveries.body }}"><code>{{ preview.message.body }}</code></pre>{% endif %}{% endif %}</div>
<details><summary>{{ t.exporters.preview.event }}</summary>
<label>{{ t.exporters.preview.kind }}<input name="sampleKind" value="{{ preview.kind }}" autocomplete="off" spellcheck="false"></label>
<label>{{ t.exporters.preview.body }}<textarea name="sampleBody" rows="8" autocomplete="off" spellcheck="false">
{{ preview.body }}</textarea></label></details>
<button name="preview" value="yes" class="secondary" formnovalidate hx-post="{{ base }}{{ action }}" hx-validate="false" hx-trigger='click, input from:"closest form" delay:300ms' hx-target="#preview" hx-select="#preview" hx-swap="outerMorph" hx-push-url="false">{{ t.exporters.preview.show }}</button></fieldset>
`;

/** What a test event looks like for an exporter. */
export const previewTemplates: Templates = { 'exporter-preview': PREVIEW };

/** The event that a form begins with, but for what it says. */
export const SAMPLE = {
    kind: 'idr_investigation_created',
    body: {
        timestamp: '2026-11-20T08:15:30.250Z',
        link: 'https://console.example.com/investigations/4d1f6c1e',
        investigationId: '4d1f6c1e-6f0a-4c55-9e0b-6a1f0c2f9d3b',
        investigationRrn: 'rrn:investigation:eu:7e2b9d52:investigation:4D1F6C1E6F0A',
        actors: {
            users: [{ name: 'Ines Duarte', link: 'https://console.example.com/users/1', emails: 'ines.duarte@example.com' }],
            assets: [{ hostname: 'web-01.example.com', shortname: 'web-01', link: 'https://console.example.com/assets/1' }],
        },
    },
} as const;

/** What a form shows of what would be sent. */
export interface PreviewShown {
    /** What is asked about, as it was typed. */
    readonly kind: string;
    readonly body: string;
    /** What became of it; null where nobody has asked, or it cannot be told. */
    readonly message: Output<'previewDraft'> | null;
    /** Why it cannot be told. */
    readonly fault: string | null;
}

/** Of the settings that a form has, and of the event that was typed into it. @param before The exporter that there is. */
export async function previewShown({ form, perform, texts }: Visit, values: ExporterValues, before?: Exporter): Promise<PreviewShown> {
    const kind = form.get('sampleKind')?.trim() ?? SAMPLE.kind;
    const body = form.get('sampleBody') ?? JSON.stringify({ ...SAMPLE.body, ...texts.exporters.preview.sample }, null, 2);
    const asked = { kind, body, message: null, fault: null };
    if (!form.has('preview')) {
        return asked;
    }

    try {
        const message = await perform('previewDraft', { draft: draftOf(values, before), kind, body: jsonOf(body) });
        return { ...asked, message: { ...message, body: indented(message.body, MAX_SHOWN).slice(0, MAX_SHOWN) } };
    } catch (error) {
        if (error instanceof ScanwireError && (error.code === 'INVALID_INPUT' || error.code === 'CONFLICT')) {
            return { ...asked, fault: errorText(error, texts) };
        }
        throw error;
    }
}

const MAX_SHOWN = 20_000;

/** Neither the receiver nor what it is shown decides what is sent. */
function draftOf(values: ExporterValues, before?: Exporter) {
    const { url: _, ...settings } = newSettings({ ...values, url: '', authentication: NOTHING });
    const chosen = Object.fromEntries(Object.entries(settings).filter(([name]) => (DRAFTED as readonly string[]).includes(name)));
    const { owner, legacy } = settings;
    if (before === undefined) {
        return { ...chosen, ...(owner !== undefined && { owner }), ...(legacy !== undefined && { legacy }) };
    }
    const { secret: __, headers: ___, ...others } = chosen as typeof settings;
    const headers = headersIn(values, before.headerNames);
    const type = values.type === before.type ? {} : { type: values.type as Exporter['type'] };
    return { id: before.id, ...others, ...type, ...changedOwner(values, before), ...(headers !== undefined && { headers }) };
}

const NOTHING: ExporterValues['authentication'] = { texts: new Map(), dropped: [], missing: [] };

function jsonOf(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch (cause) {
        throw new FormFault(({ exporters }) => exporters.preview.noJson, { cause });
    }
}
