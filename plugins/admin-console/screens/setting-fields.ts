import {
    byPlainSetting,
    isUnset,
    PLAIN_SETTINGS,
    type PlainSetting,
    type PlainSettings,
    plainText,
    type SettingName,
    SHOWN_TOGETHER,
} from '../../../lib/webhooks/exporters/plain-settings.ts';
import { FormFault, filled, type Texts } from './languages.ts';
import type { Templates } from './renderer.ts';

/*
 * The plain settings of an exporter in pages: what the control of each shows, and what comes of that which is typed into it. Fields are called as the
 * settings are, and so are their labels among the texts; `…Hint` is what is said of one.
 */

const SETTING = `{% render 'control', field: setting.name, as: setting.as, value: setting.value, choices: setting.choices, label: setting.label, hint: setting.hint, error: error %}`;

/** The control of a setting. */
export const settingTemplates: Templates = { setting: SETTING };

/** What is typed, trimmed but for a name, which is the receiver's to read: of a flag `on` or nothing, of several choices those that are chosen, else a text. */
type Typed = string | readonly string[];

/** The plain settings as a form has them. */
export type TypedSettings = Readonly<Record<SettingName, Typed>>;

/** What a form sends of the settings. */
export function typedSettings(form: URLSearchParams): TypedSettings {
    return byPlainSetting(({ as }, name) => {
        if (as === 'choices') {
            return form.getAll(name);
        }
        if (as === 'flag') {
            return form.has(name) ? 'on' : '';
        }
        const text = form.get(name) ?? '';
        return name === 'name' ? text : text.trim();
    });
}

/** What a form shows of settings that there are. */
export function shownSettings(settings: PlainSettings): TypedSettings {
    return byPlainSetting(({ as }, name) => shown(as, settings[name]));
}

/** What a form shows of the settings of a new exporter. */
export function defaultSettings(): TypedSettings {
    return byPlainSetting(({ as, byDefault }) => shown(as, byDefault));
}

function shown(as: PlainSetting['as'], value: unknown): Typed {
    if (isUnset(value)) {
        return '';
    }
    switch (as) {
        case 'flag':
            return 'on';
        case 'choices':
            return value as readonly string[];
        case 'names':
            return (value as readonly string[]).join(', ');
        case 'json':
            return JSON.stringify(value, null, 2);
        default:
            return String(value);
    }
}

/** The settings that were typed; whether they can be is for the operation to judge. @throws ScanwireError `INVALID_INPUT` for what is no JSON. */
export function settingsIn(values: TypedSettings): PlainSettings {
    return byPlainSetting((setting, name) => meant(setting, name, values[name])) as unknown as PlainSettings;
}

function meant({ as, byDefault }: PlainSetting, name: SettingName, typed: Typed): unknown {
    if (typed === '' && as !== 'flag') {
        return byDefault === null || as === 'choice' ? byDefault : typed;
    }
    switch (as) {
        case 'flag':
            return typed !== '';
        case 'number':
            return Number(typed);
        case 'names':
            return String(typed)
                .split(',')
                .map((each) => each.trim());
        case 'json':
            return jsonIn(name, String(typed));
        default:
            return typed;
    }
}

function jsonIn(field: string, text: string): unknown {
    try {
        return JSON.parse(text);
    } catch (cause) {
        throw new FormFault(({ exporters }) => filled(exporters.mustBeJson, [field]), { field, cause });
    }
}

/** What the choices of a setting are in words; one that is not here is shown as it is. */
function choiceWords({ exporters }: Texts): Readonly<Partial<Record<SettingName, Readonly<Record<string, string>>>>> {
    return { trust: exporters.trusts, afterExhausted: exporters.afters };
}

const CONTROLS: Readonly<Record<PlainSetting['as'], string>> = {
    text: 'text',
    number: 'text',
    names: 'text',
    json: 'lines',
    flag: 'flag',
    choice: 'choice',
    choices: 'choices',
};

/** What the controls of the settings show: of each by its name, and in a row of those that are shown together. */
export function settingControls(values: TypedSettings, texts: Texts): object {
    const words = choiceWords(texts);
    const labels = texts.exporters;
    const hints: Readonly<Record<string, unknown>> = texts.exporters;
    const settings = byPlainSetting((setting, name) => ({
        name,
        as: CONTROLS[setting.as],
        value: values[name],
        choices: 'of' in setting ? setting.of.map((choice) => [choice, words[name]?.[choice] ?? choice]) : [],
        label: labels[name],
        hint: hints[`${name}Hint`] ?? null,
    }));
    return { settings, others: SHOWN_TOGETHER.map((name) => settings[name]) };
}

/** A setting of an exporter as its page lists it, with its label; the text is empty for what is unset. */
export function settingFact(name: SettingName, exporter: PlainSettings, texts: Texts): readonly [label: string, text: string] {
    const text = plainText(name, exporter);
    // A sign needs no translation.
    const shown = PLAIN_SETTINGS[name].as === 'flag' && text !== '' ? '✓' : (choiceWords(texts)[name]?.[text] ?? text);
    return [texts.exporters[name], shown];
}
