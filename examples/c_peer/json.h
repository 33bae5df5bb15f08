/* As much JSON as the directory needs: the value of a key, the elements of an array, a text. */

#ifndef JSON_H
#define JSON_H

#include "common.h"

/* A value, as it stands in the text. */
struct json {
    const char *at, *end;
};

/* The value that a text consists of; false if it is no JSON. */
bool json_read(const char *text, size_t size, struct json *value);

/* The value of a key; false if the object has none, or it is no object. */
bool json_find(struct json object, const char *key, struct json *value);

/* The next element of an array; `cursor` begins as NULL. False at the end, or if it is no array. */
bool json_next(struct json array, const char **cursor, struct json *element);

/* A string, or a number as its digits, in memory of its own; NULL if it is anything else. */
char *json_text(struct json value);

/* json_text of the value of a key; NULL if there is none. */
char *json_text_of(struct json object, const char *key);

/* A text as a JSON string, in memory of its own. */
char *json_quoted(const char *text);

#endif
