/** What the screens say, in English: another language is another object of this form. `%` stands for what is filled in. */
export const texts = {
    locale: 'en',
    product: 'Administration',
    skip: 'To the content',
    navigation: 'Pages',
    never: 'never',
    none: 'none',
    state: 'State',
    actions: 'Actions',
    copy: 'Copy',
    copied: 'Copied',
    more: 'More',
    required: 'required',

    refusals: {
        title: 'This cannot be done',
        forbidden: 'Access needs the rights of an administrator.',
        failed: 'The server failed; its log says why.',
        foreignForm: 'This form does not come from this page, or is out of date. Open the page again and repeat what you wanted.',
        unreadable: 'What was sent is no form, or is too long.',
        unknownPage: 'There is no such page.',
    },

    keys: {
        title: 'API Keys',
        about: 'Programs read the REST API with a key in the HTTP header token.',
        empty: 'There is no key yet.',
        create: 'Create an API Key',
        made: 'The key % was made.',
        shown: 'The key of %',
        shownOnce: 'Keep it now: it cannot be shown again.',
        token: 'Token',
        show: 'Show the full key of %',
        name: 'Name',
        nameHint: 'What it is for. It need not be unique.',
        scopes: 'Scopes',
        scopesHint: 'What the key may do.',
        workspaces: 'Workspaces',
        workspacesHint: 'Ids of the only workspaces that it sees, with commas between them. All when empty.',
        allWorkspaces: 'all',
        expiresAt: 'Expires',
        expiresAtHint: 'From the beginning of this day on, in UTC, it is refused. Never when empty.',
        limits: 'Scopes, workspaces, end',
        created: 'Created',
        lastUsed: 'Last used',
        active: 'active',
        expired: 'expired',
        revoked: 'revoked',
        revoke: 'Revoke',
        revokeAsk: 'Whoever uses % is refused from then on, for good.',
        revokeNow: 'Revoke %',
        wasRevoked: 'The key was revoked.',
    },
} as const;

/** A tree of texts with the keys of the English one. */
export type Texts = Widened<typeof texts>;

type Widened<T> = { readonly [Key in keyof T]: T[Key] extends string ? string : Widened<T[Key]> };
