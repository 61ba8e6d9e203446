import type { Exporter, NewExporterSettings } from '../../../lib/webhooks/exporters/exporter.ts';
import type { ExporterChanges } from '../../../lib/webhooks/exporters/exporter-patch.ts';
import type { HeaderChanges, HeaderPairs } from '../../../lib/webhooks/messages/message-headers.ts';
import { generateSecret } from '../../../lib/webhooks/messages/signing-secret.ts';
import { EXPORT_TYPES, type ExportType, FORMATS } from '../../../lib/webhooks/setting-values.ts';
import {
    authenticationIn,
    authenticationTemplates,
    missingIn,
    shownParts,
    type TypedAuthentication,
    typedAuthentication,
} from './authentication-form.ts';
import type { Texts } from './languages.ts';
import type { Templates } from './renderer.ts';
import {
    defaultSettings,
    settingControls,
    settingsIn,
    settingTemplates,
    shownSettings,
    type TypedSettings,
    typedSettings,
} from './setting-fields.ts';

/*
 * The form of an exporter, for a new one and for one that there is. Fields are called as the settings are, so that a refusal finds the
 * one that it is about; what a text comes to is for the operation to judge.
 */

const FORM = `{% render 'form', action: action, name: title %}{% render 'error', error: error %}
<fieldset>
<label>{{ t.exporters.kind }} <select name="kind"><option selected value="webhook">{{ t.exporters.universal }}</option></select></label>
{% render 'input', field: 'collector', label: t.exporters.collector, value: values.collector, hint: t.exporters.collectorHint, required: true, list: 'collectors', error: error %}
<datalist id="collectors">{% for name in collectors %}<option value="{{ name }}"></option>{% endfor %}</datalist>
{% render 'setting', setting: settings.name, error: error %}
{% render 'input', field: 'url', label: t.exporters.url, value: values.url, hint: t.exporters.urlHint, required: true, error: error %}
{% if isNew %}{% render 'input', field: 'secret', label: t.exporters.secret, value: values.secret, hint: t.exporters.secretHint, required: true, id: 'secret', error: error %}{% render 'copy', id: 'secret' %}{% endif %}
</fieldset>
<fieldset id="headers"><legend>{{ t.exporters.headers }}</legend>
<p id="headers-hint"><small>{{ t.exporters.headersHint }}{% if keptHeaders.length > 0 %} {{ t.exporters.headersKept }}{% endif %}</small></p><input type="hidden" name="headersShown" value="yes">
{% for row in values.headers %}{% assign isKept = false %}{% if row[1] == '' and keptHeaders contains row[0] %}{% assign isKept = true %}{% endif %}<div class="pair"><input name="headerName" value="{{ row[0] }}" autocomplete="off" spellcheck="false" aria-label="{{ t.exporters.headerName }} {{ forloop.index }}" aria-describedby="headers-hint" placeholder="{% if forloop.first %}{{ t.exporters.headerExamples.name }}{% else %}{{ t.exporters.headerName }}{% endif %}"><span aria-hidden="true">:</span><input name="headerValue" value="{{ row[1] }}" autocomplete="off" spellcheck="false" aria-label="{{ t.exporters.headerValue }} {{ forloop.index }}" aria-describedby="headers-hint" placeholder="{% if isKept %}{{ t.exporters.headerStays }}{% elsif forloop.first %}{{ t.exporters.headerExamples.value }}{% else %}{{ t.exporters.headerValue }}{% endif %}"></div>
{% endfor %}{% render 'said', field: 'headers', error: error %}<p><button name="moreHeaders" value="yes" class="secondary" formnovalidate>{{ t.exporters.moreHeaders }}</button></p>{% unless isNew %}
{% if keptHeaders.length > 0 %}<label><input type="checkbox" name="dropHeaders"{% if values.dropHeaders %} checked{% endif %}> {{ t.exporters.dropHeaders }}</label>{% endif %}
{% if carries and isOwned != true %}<label><input type="checkbox" name="keepHeaders"{% if values.keepHeaders %} checked{% endif %}> {{ t.exporters.keepHeaders }}</label>{% endif %}{% endunless %}</fieldset>
<fieldset><label>{{ t.exporters.type }} <select name="type">{% for type in types %}<option value="{{ type }}"{% if type == values.type %} selected{% endif %}>{{ t.exporters.types[type] }}</option>{% endfor %}</select>
{% render 'said', field: 'type', hint: typeHint, error: error %}</label></fieldset>
<fieldset><legend>{{ t.exporters.trust }}</legend>
{% if isOwned and values.trust != 'all' %}{% else %}<label><input type="checkbox" name="trustAll"{% if values.trust == 'all' %} checked{% endif %}> {{ t.exporters.trustAll }}</label>{% endif %}
<label><input type="checkbox" name="trustSelfSigned"{% if values.trust == 'self-signed' %} checked{% endif %}> {{ t.exporters.trustSelfSigned }}</label>
{% render 'said', field: 'trust', hint: t.exporters.trustHint, error: error %}</fieldset>
<details{% if values.open %} open{% endif %}><summary>{{ t.exporters.more }}</summary>
{% render 'setting', setting: settings.kinds, error: error %}
{% render 'setting', setting: settings.filter, error: error %}
{% render 'input', field: 'format', label: t.exporters.format, value: values.format, hint: t.exporters.formatHint, list: 'formats', error: error %}
<datalist id="formats">{% for name in formats %}<option value="{{ name }}"></option>{% endfor %}</datalist>
{% render 'setting', setting: settings.template, error: error %}
{% render 'input', field: 'formatSecret', type: 'password', label: t.exporters.formatSecret, value: '', hint: t.exporters.formatSecretHint, again: values.formatSecretAgain, error: error %}
{% if values.formatSecretAgain %}{% render 'asked-again', name: 'formatSecret' %}{% render 'give-up', name: 'formatSecret', text: t.exporters.giveUpFormatSecret %}{% endif %}
<fieldset><legend>{{ t.exporters.order }}</legend>
<label><input type="checkbox" name="ordered"{% if values.ordered %} checked{% endif %}> {{ t.exporters.ordered }}</label>
{% render 'setting', setting: settings.afterExhausted, error: error %}
{% render 'said', field: 'ordered', hint: t.exporters.orderHint, error: error %}</fieldset>
{% render 'setting', setting: settings.signatures, error: error %}
{% render 'exporter-preview', preview: preview, action: action %}
{% for setting in others %}{% render 'setting', setting: setting, error: error %}{% endfor %}
<fieldset><legend>{{ t.exporters.authentication }}</legend>{% render 'authentication-parts', parts: parts, error: error %}</fieldset>
{% if isOwned %}{% else %}{% render 'input', field: 'owner', label: t.exporters.owner, value: values.owner, hint: ownerHint, error: error %}{% endif %}
{% if isNew %}<label><input type="checkbox" name="legacy"{% if values.legacy %} checked{% endif %}> {{ t.exporters.legacy }}</label>{% endif %}
</details>
{% unless isRunning %}<label><input type="checkbox" name="start"{% if values.start %} checked{% endif %}> {{ t.exporters.startNow }}</label>{% endunless %}
<button>{{ t.exporters.save }}</button></form>
`;

/** The form of an exporter, and its parts. */
export const formTemplates: Templates = { 'exporter-form': FORM, ...settingTemplates, ...authenticationTemplates };

/** What the fields of the form hold. */
export interface ExporterValues extends TypedSettings {
    readonly url: string;
    readonly secret: string;
    readonly headers: HeaderPairs;
    /** Whether the rows of the form are all that there is: a name that was emptied is dropped. */
    readonly headersShown: boolean;
    readonly dropHeaders: boolean;
    readonly keepHeaders: boolean;
    readonly type: string;
    readonly formatSecret: string;
    /** Whether a form that is shown again asks for it again. */
    readonly formatSecretAgain: boolean;
    readonly authentication: TypedAuthentication;
    /** Null where the form does not ask for it. */
    readonly owner: string | null;
    readonly legacy: boolean;
    readonly start: boolean;
    /** Whether what is folded away is open. */
    readonly open: boolean;
}

const ROWS = 2;
const EMPTY_ROWS: HeaderPairs = Array.from({ length: ROWS }, () => ['', ''] as const);

/** What a form for a new exporter begins with: a secret is there already. */
export function newValues(): ExporterValues {
    return {
        ...valuesOf(new URLSearchParams({ start: 'on' })),
        ...defaultSettings(),
        secret: generateSecret(),
        open: false,
    };
}

/** What a form for an exporter begins with. @param exporter With its whole URL. */
export function valuesFrom(exporter: Exporter): ExporterValues {
    const { headerNames, url, type, owner } = exporter;
    const headers = [...headerNames.map((header) => [header, ''] as const), ...EMPTY_ROWS];
    return { ...newValues(), ...shownSettings(exporter), headers, url, type, owner: owner ?? '', secret: '', start: false };
}

/** What was typed into the form. */
export function valuesOf(form: URLSearchParams): ExporterValues {
    const text = (name: string): string => form.get(name) ?? '';
    const formatSecret = form.getAll('giveUp').includes('formatSecret') ? '' : text('formatSecret');
    const values = form.getAll('headerValue');
    const rows = form.getAll('headerName').map((name, index) => [name, values[index] ?? ''] as const);
    return {
        ...typedSettings(form),
        url: text('url'),
        secret: text('secret'),
        headers: rows.length === 0 || form.has('moreHeaders') ? [...rows, ...EMPTY_ROWS] : rows,
        headersShown: form.has('headersShown'),
        dropHeaders: form.has('dropHeaders'),
        keepHeaders: form.has('keepHeaders'),
        type: text('type') || 'investigation',
        trust: form.has('trustAll') ? 'all' : form.has('trustSelfSigned') ? 'self-signed' : 'strict',
        formatSecret,
        formatSecretAgain: formatSecret !== '' || missingIn(form).includes('formatSecret'),
        authentication: typedAuthentication(form),
        owner: form.get('owner'),
        legacy: form.has('legacy'),
        start: form.has('start'),
        open: true,
    };
}

/** The settings of a new exporter. @throws ScanwireError `INVALID_INPUT` for what is no JSON. */
export function newSettings(values: ExporterValues): NewExporterSettings {
    const { secret, owner, legacy } = values;
    return { ...changesOf(values), url: values.url, headers: typed(values.headers), secret, legacy, ...(owner && { owner }) };
}

/** What the form changes of an exporter; secrets that are left empty stay. @throws ScanwireError as {@link newSettings}. */
export function changesOf(values: ExporterValues, before?: Pick<Exporter, 'type' | 'headerNames' | 'owner'>): ExporterChanges {
    const { url, formatSecret, type } = values;
    const headers = headersIn(values, before?.headerNames);
    return {
        ...settingsIn(values),
        url,
        ...(formatSecret !== '' && { formatSecret }),
        ...authenticationIn(values.authentication),
        ...(headers !== undefined && { headers }),
        ...(before !== undefined && before.type !== type && { type: type as ExportType }),
        ...(before !== undefined && changedOwner(values, before)),
        ...(values.keepHeaders && { keepHeaders: true }),
    };
}

/** Whose the exporter becomes, where that changes. */
export function changedOwner({ owner }: ExporterValues, before: Pick<Exporter, 'owner'>): Pick<ExporterChanges, 'owner'> {
    return owner === null || owner === (before.owner ?? '') ? {} : { owner: owner || null };
}

/** What the rows come to: a name without a value stands for the value that there is. @returns Undefined where all stays as it is. */
export function headersIn(values: ExporterValues, kept: readonly string[] = []): HeaderChanges | undefined {
    const isKept = (name: string): boolean => kept.some((one) => one.toLowerCase() === name.toLowerCase());
    const rows = typed(values.headers).map(([name, value]) => [name, value === '' && isKept(name) ? null : value] as const);
    const headers = values.dropHeaders ? rows.filter(([, value]) => value !== null) : rows;
    const isAsBefore = headers.length === kept.length && headers.every(([name, value], index) => value === null && name === kept[index]);
    const saysNothing = headers.length === 0 && !values.headersShown;
    return (isAsBefore || saysNothing) && !values.dropHeaders ? undefined : headers;
}

function typed(headers: HeaderPairs): HeaderPairs {
    return headers.filter(([name, value]) => name !== '' || value !== '');
}

/** Whether there may be something of an exporter that was given for its receiver only: a format but the first may have a secret. */
function isForReceiver({ headerNames, authentication, format }: Exporter): boolean {
    return headerNames.length > 0 || authentication.length > 0 || format !== 'native';
}

/** What the form shows beside what it holds. @param before The exporter that there is. */
export function controlsOf(values: ExporterValues, texts: Texts, before?: Exporter): object {
    const types = before?.legacy === true ? EXPORT_TYPES.slice(1) : EXPORT_TYPES.slice(0, 1);
    const parts = shownParts(values.authentication, before?.authentication ?? [], texts);
    return {
        ...settingControls(values, texts),
        formats: FORMATS,
        types,
        parts,
        isRunning: before?.state === 'running',
        carries: before !== undefined && isForReceiver(before),
        keptHeaders: before?.headerNames ?? [],
    };
}
