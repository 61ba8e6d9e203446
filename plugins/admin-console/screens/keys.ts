import { ScanwireError } from '../../../lib/errors.ts';
import type { NewKeyOptions } from '../../../lib/keys/limits.ts';
import { type ApiKeyScope, DEFAULT_SCOPES, SCOPES } from '../../../lib/keys/scopes.ts';
import { errorText } from './languages.ts';
import type { Fault, Page } from './renderer.ts';
import type { Screen, Visit } from './screen.ts';

const KEYS = `{% layout 'layout' %}{% block content %}
{% render 'keys-made', shown: shown %}
{% if notice %}<p role="status">{{ notice }}</p>{% endif %}
{% if keys.length == 0 %}<p>{{ t.keys.empty }}</p>{% else %}
<div class="table cards" role="region" tabindex="0" aria-label="{{ t.keys.title }}"><table>
<thead><tr><th scope="col">{{ t.keys.name }}</th><th scope="col">{{ t.keys.token }}</th><th scope="col">{{ t.keys.scopes }}</th><th scope="col">{{ t.keys.workspaces }}</th><th scope="col">{{ t.keys.created }}</th><th scope="col">{{ t.keys.expiresAt }}</th><th scope="col">{{ t.keys.lastUsed }}</th><th scope="col">{{ t.state }}</th><th scope="col">{{ t.actions }}</th></tr></thead>
<tbody>
{% for key in keys %}{% render 'key', key: key %}{% endfor %}</tbody>
</table></div>{% endif %}
{% render 'new-key', values: values, error: error, scopes: scopes, defaults: defaults %}
{% endblock %}`;

const KEY = `<tr><th scope="row">{{ key.name }}</th>
<td data-label="{{ t.keys.token }}">{% if key.revealable and key.state != 'revoked' %}{% assign action = '/keys/' | append: key.id | append: '/reveal' %}{% render 'form', action: action %}<button class="outline" aria-label="{{ key.start }}••••••••: {{ t.keys.show | fill: key.name }}">{{ key.start }}••••••••</button></form>{% else %}{{ key.start }}••••••••{% endif %}</td>
<td data-label="{{ t.keys.scopes }}">{% for scope in key.scopes %}<code>{{ scope }}</code> {% endfor %}</td>
<td data-label="{{ t.keys.workspaces }}">{% if key.workspaces %}{{ key.workspaces | join: ', ' }}{% else %}{{ t.keys.allWorkspaces }}{% endif %}</td>
<td data-label="{{ t.keys.created }}">{% render 'time', at: key.createdAt %}</td>
<td data-label="{{ t.keys.expiresAt }}">{% render 'time', at: key.expiresAt %}</td>
<td data-label="{{ t.keys.lastUsed }}">{% render 'time', at: key.lastUsedAt %}</td>
<td data-label="{{ t.state }}">{{ t.keys[key.state] }}</td>
<td data-label="{{ t.actions }}">{% if key.state != 'revoked' %}{% assign action = '/keys/' | append: key.id | append: '/revoke' %}<details><summary aria-label="{{ t.keys.revokeNow | fill: key.name }}">{{ t.keys.revoke }}</summary>
<p>{{ t.keys.revokeAsk | fill: key.name }}</p>
{% render 'form', action: action %}<button>{{ t.keys.revokeNow | fill: key.name }}</button></form></details>{% endif %}</td></tr>
`;

const MADE = `{% if shown %}<section role="status"><h2>{{ shown.title | fill: shown.name }}</h2>
<p class="actions"><code id="shown-key" class="key">{{ shown.key }}</code>{% render 'copy', id: 'shown-key' %}</p>
<p>{% if shown.revealable %}{{ t.keys.shownAgain }}{% else %}<strong>{{ t.keys.shownOnce }}</strong>{% endif %}</p></section>{% endif %}`;

const NEW_KEY = `<section aria-labelledby="create"><h2 id="create">{{ t.keys.create }}</h2>{% assign about = t.keys.about | split: '%' %}<p>{{ about[0] }}<code>token</code>{{ about[1] }}</p>
{% render 'form', action: '/keys' %}{% render 'error', error: error %}
{% render 'input', field: 'name', label: t.keys.name, value: values.name, hint: t.keys.nameHint, required: true, error: error %}
<p><small>{{ t.keys.limitsHint | fill: defaults }}</small></p>
<details{% if values.open %} open{% endif %}><summary>{{ t.keys.limits }}</summary>
<fieldset class="scopes"><legend>{{ t.keys.scopes }}</legend>
{% for scope in scopes %}<label><input type="checkbox" name="scopes" value="{{ scope }}" aria-describedby="{{ scope }}-opens"{% if values.scopes contains scope %} checked{% endif %}> {{ scope }}</label><small id="{{ scope }}-opens">{{ t.keys.opens[scope] }}</small>
{% endfor %}{% render 'said', field: 'scopes', error: error %}</fieldset>
{% render 'input', field: 'workspaces', label: t.keys.workspaces, value: values.workspaces, hint: t.keys.workspacesHint, error: error %}
{% render 'input', field: 'expiresAt', type: 'date', label: t.keys.expiresAt, value: values.expiresAt, hint: t.keys.expiresAtHint, error: error %}
</details>
<button>{{ t.keys.create }}</button></form></section>
`;

/** API Keys: the table, the form that makes one, and what a click shows. */
export const keysScreen: Screen = {
    path: '/keys',
    title: ({ keys }) => keys.title,
    templates: { keys: KEYS, key: KEY, 'keys-made': MADE, 'new-key': NEW_KEY },
    routes: [
        { method: 'GET', path: '/keys', answer: listed },
        { method: 'POST', path: '/keys', answer: created },
        { method: 'POST', path: '/keys/{id}/reveal', answer: revealed },
        { method: 'POST', path: '/keys/{id}/revoke', answer: revoked },
        // Where a page is loaded again that a form has led to.
        ...['reveal', 'revoke'].map((name) => ({
            method: 'GET' as const,
            path: `/keys/{id}/${name}`,
            answer: async () => ({ to: '/keys' }),
        })),
    ],
};

interface Shown {
    readonly title: string;
    readonly name: string;
    readonly key: string;
    readonly revealable: boolean;
}

interface Values {
    readonly name: string;
    readonly scopes: readonly string[];
    readonly workspaces: string;
    readonly expiresAt: string;
    /** Whether what is folded away is open. */
    readonly open: boolean;
}

const NEW: Values = { name: '', scopes: DEFAULT_SCOPES, workspaces: '', expiresAt: '', open: false };

interface Said {
    readonly shown?: Shown;
    readonly notice?: string;
    readonly values?: Values;
    readonly error?: Fault;
    readonly status?: number;
}

async function listPage({ perform, texts }: Visit, { status = 200, values = NEW, ...said }: Said): Promise<Page> {
    const keys = await perform('listKeys', {});
    const rows = keys.map((key) => ({
        ...key,
        state: key.revokedAt !== null ? 'revoked' : key.expired ? 'expired' : 'active',
    }));
    return {
        template: 'keys',
        title: texts.keys.title,
        status,
        data: { keys: rows, scopes: SCOPES, defaults: DEFAULT_SCOPES.join(', '), values, ...said },
    };
}

async function listed(visit: Visit): Promise<Page> {
    return await listPage(visit, visit.query.has('revoked') ? { notice: visit.texts.keys.wasRevoked } : {});
}

/** The key is in the answer itself, never in an address. */
async function created(visit: Visit): Promise<Page> {
    const { form, perform, texts } = visit;
    const values: Values = {
        name: form.get('name') ?? '',
        scopes: form.getAll('scopes'),
        workspaces: form.get('workspaces')?.trim() ?? '',
        expiresAt: form.get('expiresAt') ?? '',
        open: true,
    };
    try {
        const key = await perform('createKey', { name: values.name, ...limitsOf(values) });
        const kept = (await perform('listKeys', {})).find(({ id }) => id === key.id);
        const shown = { title: texts.keys.made, name: key.name, key: key.key, revealable: kept?.revealable === true };
        return await listPage(visit, { shown, status: 201 });
    } catch (error) {
        if (error instanceof ScanwireError && error.code === 'INVALID_INPUT') {
            return await listPage(visit, { values, error: { field: error.field, message: errorText(error, texts) }, status: 400 });
        }

        throw error;
    }
}

/** What the form says of scopes and limits; the operation knows their rules, and takes texts for what they hold. */
function limitsOf({ scopes, workspaces, expiresAt }: Values): NewKeyOptions {
    return {
        scopes: scopes as readonly ApiKeyScope[],
        ...(workspaces !== '' && { workspaces: workspaces.split(',').map((id) => id.trim() as unknown as number) }),
        ...(expiresAt !== '' && { expiresAt: expiresAt as unknown as Date }),
    };
}

async function revealed(visit: Visit): Promise<Page> {
    const { name, key } = await visit.perform('revealKey', { id: visit.params.id ?? '' });
    return await listPage(visit, { shown: { title: visit.texts.keys.shown, name, key, revealable: true } });
}

async function revoked({ params, perform }: Visit): Promise<{ to: string }> {
    await perform('revokeKey', { id: params.id ?? '' });
    return { to: '/keys?revoked' };
}
