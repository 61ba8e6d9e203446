import { Ajv2020 } from 'ajv/dist/2020.js';

/*
 * What vendors' documentation says of a message, as JSON Schema; each with its source and the day on which it was read. A receiver of
 * theirs cannot run here, so these stand for it.
 */

type Rules = Readonly<Record<string, unknown>>;

const object = (required: readonly string[], properties: Rules): Rules => ({
    type: 'object',
    required,
    properties,
    additionalProperties: false,
});

const text = (max: number, min = 1): Rules => ({ type: 'string', minLength: min, maxLength: max });

const slackText = (max: number): Rules => ({
    oneOf: [
        {
            properties: { type: { const: 'plain_text' }, text: text(max), emoji: { type: 'boolean' } },
            required: ['type', 'text'],
            additionalProperties: false,
        },
        {
            properties: { type: { const: 'mrkdwn' }, text: text(max), verbatim: { type: 'boolean' } },
            required: ['type', 'text'],
            additionalProperties: false,
        },
    ],
});

/**
 * Slack, read on 2026-11-23: docs.slack.dev/reference/block-kit/blocks/header-block (plain text of at most 150 characters), api.slack.com's
 * section block (text of at most 3,000 characters, at most 10 fields of 2,000), context block (at most 10 elements), a message's at most
 * 50 blocks; api.slack.com/docs on escaping (`&`, `<`, `>` in text objects must be entities unless they are meant).
 */
export const SLACK_RULES: Rules = {
    type: 'object',
    required: ['text'],
    additionalProperties: false,
    properties: {
        text: { ...text(40_000), pattern: '^[^<>]*$' },
        blocks: {
            type: 'array',
            maxItems: 50,
            items: {
                oneOf: [
                    {
                        properties: {
                            type: { const: 'header' },
                            block_id: text(255),
                            text: { allOf: [slackText(150), { properties: { type: { const: 'plain_text' } } }] },
                        },
                        required: ['type', 'text'],
                        additionalProperties: false,
                    },
                    {
                        properties: {
                            type: { const: 'section' },
                            block_id: text(255),
                            text: slackText(3000),
                            fields: { type: 'array', minItems: 1, maxItems: 10, items: slackText(2000) },
                        },
                        required: ['type'],
                        anyOf: [{ required: ['text'] }, { required: ['fields'] }],
                        additionalProperties: false,
                    },
                    {
                        properties: {
                            type: { const: 'context' },
                            block_id: text(255),
                            elements: { type: 'array', minItems: 1, maxItems: 10, items: slackText(3000) },
                        },
                        required: ['type', 'elements'],
                        additionalProperties: false,
                    },
                ],
            },
        },
    },
};

const elementOf = (type: string, required: readonly string[], properties: Rules): Rules =>
    object(['type', ...required], {
        type: { const: type },
        id: { type: 'string' },
        separator: { type: 'boolean' },
        spacing: { enum: ['default', 'none', 'small', 'medium', 'large', 'extraLarge', 'padding'] },
        isVisible: { type: 'boolean' },
        ...properties,
    });

/** Microsoft's schema takes these words with a small first letter and with a large one. */
const word = (...words: readonly string[]): Rules => ({ enum: words.flatMap((one) => [one, one[0]?.toUpperCase() + one.slice(1)]) });

const LOOKS: Rules = {
    text: { type: 'string' },
    color: word('default', 'dark', 'light', 'accent', 'good', 'warning', 'attention'),
    fontType: word('default', 'monospace'),
    isSubtle: { type: 'boolean' },
    size: word('default', 'small', 'medium', 'large', 'extraLarge'),
    weight: word('default', 'lighter', 'bolder'),
};

/**
 * Of Adaptive Cards, read on 2026-11-26: microsoft/AdaptiveCards, schemas/1.2.1/adaptive-card.json of 2020-07-20, MIT: names, types, enumerations and what is required of
 * the elements that a message of ours can have, and of the one in Microsoft's sample.
 */
const CARD_RULES: Rules = object(['type', 'version', 'body'], {
    $schema: { type: 'string' },
    type: { const: 'AdaptiveCard' },
    version: { enum: ['1.0', '1.1', '1.2'] },
    body: {
        type: 'array',
        items: {
            oneOf: [
                elementOf('RichTextBlock', ['inlines'], {
                    inlines: {
                        type: 'array',
                        items: object(['type', 'text'], {
                            type: { const: 'TextRun' },
                            highlight: { type: 'boolean' },
                            italic: { type: 'boolean' },
                            strikethrough: { type: 'boolean' },
                            ...LOOKS,
                        }),
                    },
                    horizontalAlignment: word('left', 'center', 'right'),
                }),
                elementOf('TextBlock', ['text'], { wrap: { type: 'boolean' }, maxLines: { type: 'number' }, ...LOOKS }),
            ],
        },
    },
    actions: {
        type: 'array',
        items: object(['type', 'url'], {
            type: { const: 'Action.OpenUrl' },
            title: { type: 'string' },
            url: { type: 'string' },
            iconUrl: { type: 'string' },
            style: word('default', 'positive', 'destructive'),
        }),
    },
});

/**
 * Teams, read on 2026-11-23: MicrosoftDocs/msteams-docs, webhooks-and-connectors/how-to/connectors-using.md (`type` is `message`, a list of
 * attachments, each of the type of Adaptive Cards with the card as `content`). The card is held to Microsoft's schema, and read by the `adaptivecards` package.
 */
export const TEAMS_RULES: Rules = {
    type: 'object',
    required: ['type', 'attachments'],
    additionalProperties: false,
    properties: {
        type: { const: 'message' },
        attachments: {
            type: 'array',
            minItems: 1,
            maxItems: 1,
            items: {
                required: ['contentType', 'content'],
                additionalProperties: false,
                properties: {
                    contentType: { const: 'application/vnd.microsoft.card.adaptive' },
                    contentUrl: { type: 'null' },
                    content: CARD_RULES,
                },
            },
        },
    },
};

/** The most that Teams takes as one message, PagerDuty as one event, Azure Monitor (MicrosoftDocs/azure-monitor-docs, azure-monitor-limits-custom-logs.md) as one call. */
export const TEAMS_BYTES: number = 28 * 1024;
export const PAGERDUTY_BYTES: number = 512 * 1024;
export const SENTINEL_BYTES: number = 1_000_000;

/** PagerDuty, read on 2026-11-23: PagerDuty/developer-docs, docs/events-API-v2/02-Trigger-Events.md and 01-Overview.md (512 KB in all). */
export const PAGERDUTY_RULES: Rules = {
    type: 'object',
    required: ['routing_key', 'event_action'],
    if: { properties: { event_action: { const: 'trigger' } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: { required: ['payload'] },
    else: { required: ['dedup_key'] },
    additionalProperties: false,
    properties: {
        routing_key: text(32, 32),
        event_action: { enum: ['trigger', 'acknowledge', 'resolve'] },
        dedup_key: text(255),
        payload: {
            type: 'object',
            required: ['summary', 'source', 'severity'],
            additionalProperties: false,
            properties: {
                summary: text(1024),
                source: { type: 'string', minLength: 1 },
                severity: { enum: ['critical', 'error', 'warning', 'info'] },
                timestamp: { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}(?:Z|[+-]\\d{4})$' },
                component: { type: 'string' },
                group: { type: 'string' },
                class: { type: 'string' },
                custom_details: { type: 'object' },
            },
        },
        images: { type: 'array', items: object(['src'], { src: { type: 'string' }, href: { type: 'string' }, alt: { type: 'string' } }) },
        links: {
            type: 'array',
            items: {
                required: ['href'],
                additionalProperties: false,
                properties: { href: { type: 'string' }, text: { type: 'string' } },
            },
        },
        client: { type: 'string' },
        client_url: { type: 'string' },
    },
};

/**
 * Splunk, read on 2026-11-23: help.splunk.com, "Format events for HTTP Event Collector" (metadata `time` in seconds of the epoch with
 * fractions, `host`, `source`, `sourcetype`, `index`, `fields` of flat texts or lists of them; the data under `event`).
 */
export const SPLUNK_RULES: Rules = {
    type: 'object',
    required: ['event'],
    additionalProperties: false,
    properties: {
        time: { type: ['number', 'string'], minimum: 0, maximum: 1e11, pattern: '^\\d{1,10}(?:\\.\\d+)?$' },
        host: { type: 'string', minLength: 1 },
        source: { type: 'string' },
        sourcetype: { type: 'string' },
        index: { type: 'string' },
        fields: {
            type: 'object',
            additionalProperties: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
        },
        event: { type: ['object', 'string'] },
    },
};

/**
 * Azure Monitor, read on 2026-11-23: MicrosoftDocs/azure-monitor-docs, articles/azure-monitor/logs/logs-ingestion-api-overview.md (a list of
 * rows; columns begin with a letter and have up to 45 letters, digits and underscores; some names are reserved).
 */
export const SENTINEL_RULES: Rules = {
    type: 'array',
    minItems: 1,
    items: {
        type: 'object',
        propertyNames: {
            pattern: '^[A-Za-z][A-Za-z0-9_]{0,44}$',
            not: { enum: ['_ResourceId', 'id', '_SubscriptionId', 'TenantId', 'Type', 'UniqueId', 'Title'] },
        },
        properties: { TimeGenerated: { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}T[\\d:.]+Z$' } },
    },
};

const ajv = new Ajv2020({ allErrors: true, strict: false });

/** What a message breaks of the rules; empty when it keeps them. */
export function brokenRules(rules: Rules, message: unknown): readonly string[] {
    ajv.validate(rules, message);
    return (ajv.errors ?? []).map(({ instancePath, message: rule = '' }) => `${instancePath} ${rule}`);
}
