"""Estimators with the scikit-learn interface; `privacy_` holds the certificate of what `fit` released."""
