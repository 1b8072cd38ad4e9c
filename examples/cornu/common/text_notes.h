/* What a model of characters says in its file of the characters: the notes "encoding", a name of
 * data_encodings, and "alphabet", its characters. */
#ifndef CORNU_EXAMPLES_CORNU_TEXT_NOTES_H
#define CORNU_EXAMPLES_CORNU_TEXT_NOTES_H

#include <cornu/cornu.h>

/* Notes the encoding of the text that it is trained on. */
CornuStatus text_note(CornuModel *model, const CornuTextData *text);

/* The encoding that was noted, without text; *text is NULL if there is none. */
CornuStatus text_noted(const CornuModel *model, CornuTextData **text);

#endif
