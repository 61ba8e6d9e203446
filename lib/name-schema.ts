import Joi from 'joi';

/** A name that somebody gives: at most 255 characters, neither control characters nor half a surrogate pair, which no database keeps. */
export const nameSchema: Joi.StringSchema = Joi.string()
    .max(255)
    .pattern(/^[^\p{Cc}\p{Cs}]*$/u)
    .messages({ 'string.pattern.base': '{{#label}} must not contain control characters' });
